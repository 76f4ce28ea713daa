"""The tables of a study: what it makes of representations of the same rows."""

import itertools
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skident._math.consensus import generalized_procrustes
from skident._math.paired_rows import open_rows
from skident._math.resampling import percentile_interval
from skident._progress import progress_bar
from skident._random import generator
from skident._study_pairs import (
    compare_pairs,
    component_stability,
    interval_over_runs,
    score_factors,
)
from skident._validation import as_rows
from skident.metrics._crossfit import Workers
from skident.metrics._protocol import Protocol, efficiency_with_interval

_ALIGNMENT, _PAIRS, _FACTORS, _COMPONENTS = range(10, 14)


class StudyTables:
    """Mixin of a study: fills its tables from representations."""

    def _protocol(self, codes, transformations, n_resamples, seed):
        return Protocol(
            codes, transformations, cv=self.cv, n_resamples=n_resamples,
            confidence_level=self.confidence_level, diameter=self.diameter,
            fractions=(), max_samples=self.max_samples, seed=seed,
        )  # fmt: skip

    def _compare(self, embeddings, codes, seed):
        """Compare all pairs, find the consensus and its components."""
        alignment_seed = int(generator(seed, _ALIGNMENT).integers(2**31))
        protocol = self._protocol(
            codes, self.transformations, self.n_resamples, alignment_seed
        )
        sides, pairs = (
            [open_rows(Z) for Z in embeddings],
            list(itertools.combinations(range(len(embeddings)), 2)),
        )
        solved = protocol.unmix(sides, Workers(self.n_jobs, lambda n: None))
        with progress_bar(len(pairs), "pairs", verbose=self.verbose) as advance:
            found = compare_pairs(
                protocol, sides, pairs, solved, n_jobs=self.n_jobs, advance=advance
            )
        self._tabulate(found, pairs, seed)
        self._consensus = generalized_procrustes(sides, self.reference_run_)
        if not self._consensus.converged:
            warnings.warn(
                "The consensus did not settle: the representations leave its turns "
                "free, so that its axes depend on where the search ended.",
                ConvergenceWarning,
            )
        self.embedding_ = self._consensus.apply(embeddings)
        self.components_ = self.component_mean_ = None
        self.component_stability_ = self.component_lowest_ = None
        if solved is None:
            return
        (
            self.components_,
            self.component_mean_,
            self.component_stability_,
            self.component_lowest_,
        ) = component_stability(
            sides,
            open_rows(self.embedding_),
            codes,
            n_rows=self.max_samples,
            n_jobs=self.n_jobs,
            rng=generator(seed, _COMPONENTS),
        )

    def _tabulate(self, found, pairs, seed):
        """Put the errors of all pairs into tables."""
        names = list(self.transformations)
        errors = np.array([one.errors.error for one in found])
        draws = np.mean([one.draws for one in found], axis=0)
        mean, level = errors.mean(axis=0), self.confidence_level
        chance = np.mean([one.errors.chance for one in found], axis=0)
        low, high = _columns(percentile_interval(draws, level))
        self.table_ = {
            "transformation": names, "error": mean, "lower": low, "upper": high,
        }  # fmt: skip
        over_runs = interval_over_runs(
            errors, pairs, self.n_resamples, level, generator(seed, _PAIRS)
        )
        if over_runs is not None:
            self.table_["run_lower"], self.table_["run_upper"] = _columns(over_runs)
        self.table_["chance"] = chance
        for kind in ("max_error", "robust_error"):
            self.table_[kind] = np.mean(
                [getattr(one.errors, kind) for one in found], axis=0
            )
        self.ica_efficiency_, self.ica_efficiency_interval_ = efficiency_with_interval(
            names, mean, draws, chance, level
        )
        first, second = _columns(np.array(pairs))
        self.pair_table_ = {
            "first": first,
            "second": second,
            **dict(zip(names, _columns(errors), strict=True)),
            "ica_efficiency": [one.errors.ica_efficiency for one in found],
        }
        main = errors[:, names.index("rigid") if "rigid" in names else 0]
        runs = np.arange(second.max() + 1)
        own = np.array([main[(first == r) | (second == r)].mean() for r in runs])
        self.run_table_ = {"run": runs, "error": own}
        self.reference_run_ = int(np.argmin(own))

    def _score_factors(self, factors, embeddings, codes, groups, seed):
        """Compare every run with the truth."""
        self.factor_table_ = None
        if factors is None:
            return
        scores = score_factors(
            factors, embeddings, groups=None if groups is None else codes,
            n_jobs=self.n_jobs, seed=seed, stream=_FACTORS,
        )  # fmt: skip
        scores = {name: np.array(values) for name, values in scores.items()}
        self.run_table_.update(scores)
        plain = [name for name in scores if not name.endswith("_ica")]
        self.factor_table_ = {"score": plain}
        rng, n_runs = generator(seed, _FACTORS), len(embeddings)
        drawn = rng.integers(n_runs, size=(self.n_resamples, n_runs))
        for ending in ("", "_ica"):
            values = np.array([scores[name + ending] for name in plain])
            means = values[:, drawn].mean(axis=2).T
            low, high = _columns(percentile_interval(means, self.confidence_level))
            self.factor_table_["value" + ending] = values.mean(axis=1)
            self.factor_table_["lower" + ending] = low
            self.factor_table_["upper" + ending] = high


def _columns(table):
    """Return the columns as arrays of their own: equal tables then hash equally."""
    return [column.copy() for column in table.T]


def as_embeddings(embeddings, fewest):
    """Return representations of the same rows as arrays of numbers.

    Parameters
    ----------
    embeddings : list of array-like of shape (n_samples, n_columns)
    fewest : int
        Fewest rows allowed.

    Returns
    -------
    list of ndarray

    Raises
    ------
    ValueError
        For fewer than two, other numbers of rows, frames with other ids, and what is
        no table of finite numbers, naming the representation.
    """
    if len(embeddings) < 2:
        raise ValueError(f"A study needs two embeddings, got {len(embeddings)}.")
    _check_same_index(embeddings)
    rows = [
        as_rows(Z, name=f"embeddings[{k}]", min_samples=fewest, one_column=True)
        for k, Z in enumerate(embeddings)
    ]
    lengths = [len(Z) for Z in rows]
    if len(set(lengths)) > 1:
        raise ValueError(f"embeddings must have one number of rows, got {lengths}.")
    return rows


def _check_same_index(embeddings):
    """Refuse frames whose rows have other names or another order."""
    framed = [k for k, Z in enumerate(embeddings) if hasattr(Z, "iloc")]
    for k in framed[1:]:
        if not embeddings[k].index.equals(embeddings[framed[0]].index):
            raise ValueError(
                f"embeddings[{k}] has another index than embeddings[{framed[0]}]: "
                "reorder it by .loc to the same ids, or pass arrays (.to_numpy()) to "
                "pair rows by position."
            )
