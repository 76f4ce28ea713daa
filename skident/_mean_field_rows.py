"""Rows of a mean-field model: what its likelihood takes, with or without gaps."""

import numpy as np
from sklearn.utils.validation import validate_data

from skident._entries import describe_column
from skident._nn.likelihoods import LIKELIHOODS
from skident._validation import TwoValuedInput, check_finite, to_cpu, warn_constant


class LikelihoodInput(TwoValuedInput):
    """Mixin of estimators whose columns have one of the ``LIKELIHOODS``.

    Needs the parameters ``likelihood`` and ``missing_values``.
    """

    _instead = f" Likelihoods to choose from: {', '.join(sorted(LIKELIHOODS))}."

    def _fit_rows(self, X):
        """Fix the likelihood and its units; return rows in network units."""
        auto = self.likelihood == "auto"
        self.likelihood_ = "bernoulli" if auto else self.likelihood
        self._missing_value = self.missing_values
        values, missing = self._values(X, reset=True, min_samples=2)
        present = np.ones(values.shape, bool) if missing is None else ~missing
        names = getattr(self, "feature_names_in_", None)
        for column in np.flatnonzero(~present.any(0)):
            raise ValueError(
                f"X has only missing values in {describe_column(column, names)}: "
                "nothing can be learned of it. Remove it."
            )
        with np.errstate(all="ignore"):
            units = LIKELIHOODS[self.likelihood_].learn(values, present)
        self._units = {
            "masked": missing is not None,
            "n_features": values.shape[1],
            **units,
        }
        if self.likelihood_ == "bernoulli":
            self.values_ = units["values"]
        least = np.where(present, values, np.inf).min(0)
        largest = np.where(present, values, -np.inf).max(0)
        self.constant_features_ = np.flatnonzero(least == largest)
        result = "the model will have them near constant."
        warn_constant(self, self.constant_features_, result)
        return self._network_rows(values, missing)

    def _rows(self, X):
        """Return rows, in the convention of the fit, in network units."""
        return self._network_rows(*self._values(X, reset=False))

    def _family(self):
        """Return the likelihood with the units of the fit."""
        return type(LIKELIHOODS[self.likelihood_])(**self._units)

    def _values(self, X, *, reset, min_samples=1):
        """Return the values of rows and which are missing, None if none may be."""
        if self.likelihood_ == "bernoulli" and self._missing_value is None:
            bits, (low, high) = self._two_valued(
                X, reset=reset, min_samples=min_samples
            )
            return bits * np.int8(high - low) + np.int8(low), None
        X = to_cpu(X, "X")
        names = getattr(X, "columns", None)
        values = validate_data(
            self,
            X,
            reset=reset,
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=min_samples,
        )
        missing = None
        if self._missing_value is not None:
            gap = self._missing_value
            missing = np.isnan(values) if np.isnan(gap) else values == gap
        if values.dtype.kind == "f":
            known = values if missing is None else np.where(missing, 0, values)
            check_finite(known, columns=names)
        return values, missing

    def _network_rows(self, values, missing):
        """Return rows in network units, or say which value does not belong."""
        family = self._family()
        with np.errstate(all="ignore"):
            wrong = family.breaches(values)
        if missing is not None:
            sites = family.missing_sites(missing)
            partly = missing & ~sites[:, family.site_of_column]
            self._refuse(partly, values, "values missing together or not at all")
            wrong &= ~missing
        self._refuse(wrong, values, family.rule)
        return family.rows(values, missing)

    def _refuse(self, wrong, values, rule):
        """Raise a ``ValueError`` that names the first wrong value, if there is one."""
        if not wrong.any():
            return
        row, column = np.argwhere(wrong)[0]
        where = describe_column(column, getattr(self, "feature_names_in_", None))
        raise ValueError(
            f"likelihood={self.likelihood_!r} takes {rule}, but {where}, row {row} is "
            f"{values[row, column]}.{self._instead}"
        )
