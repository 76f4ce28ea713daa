"""What may be interpreted in representations that were aligned, in words."""

import warnings
from typing import NamedTuple

import numpy as np

from skident._math.alignment import STABLE
from skident._math.ica import gaussian_level
from skident._whiten_ica import WhitenICA

# An error is far below chance under this part of it, and equals it above the other.
_FAR, _CHANCE = 0.5, 0.9
# Errors are about the same within this part of chance.
_SAME = 0.1
_EFFICIENT = 0.8
_UNEQUAL = 1.1
_MOST_ROWS = 30_000
_NO_TRUTH = (
    "Agreement is no truth: two trainings may agree on one distortion. Truth can be "
    "tested only where factors are known."
)


class Conclusion(NamedTuple):
    """What follows from alignment errors.

    Attributes
    ----------
    axes : bool or None
        Whether single axes may be interpreted as they are; None where it was not
        tested.
    distances : bool or None
        Whether distances and clusters may.
    ica_axes : bool or None
        Whether the axes that ICA finds may; None also where axes as they are may.
    headline : str
        The same in one sentence.
    reasons : list of str
        Why.
    """

    axes: bool | None
    distances: bool | None
    ica_axes: bool | None
    headline: str
    reasons: list


def conclude_pair(errors, sides=()):
    """Return what two aligned representations allow.

    Parameters
    ----------
    errors : AlignmentErrors
    sides : sequence of ndarray of shape (n_samples, n_columns)
        The representations, to see which of their components are Gaussian: of those,
        few or in two dimensions, ICA may find the same axes twice by accident.

    Returns
    -------
    Conclusion
    """
    found = _Found(errors.transformations, errors.error, errors.chance)
    found.ratio = float(np.max(errors.max_diameters) / np.min(errors.max_diameters))
    if "ica" not in found.error or found.best() is None or _axes(found):
        return _conclude(found, None, None)
    if errors.ica_stability.min() < STABLE:
        stability = "{:.2f} and {:.2f}".format(*errors.ica_stability)
        reason = f"ICA finds other axes on other folds (stability {stability})"
        return _conclude(found, False, f"{reason}: nothing can be said of them.")
    efficiency = errors.ica_efficiency
    if efficiency is not None:
        good = efficiency >= _EFFICIENT
        reason = f"ICA recovers {efficiency:.0%} of what a rigid map gains: " + (
            "it fixes the rotation without seeing the other side."
            if good
            else "its axes are still arbitrary, in part or wholly."
        )
    else:
        good = found.is_far("ica") and found.is_near("ica")
        reason = f"The error after ICA is {found.said('ica')}: " + (
            "ICA finds the same axes in both." if good else "its axes do not agree."
        )
    if not good:
        return _conclude(found, False, reason)
    told = [count_non_gaussian(Z) for Z in sides]
    narrow = min(told, key=lambda one: one[0], default=None)
    if narrow is None or narrow[0] == narrow[1]:
        return _conclude(found, True, reason)
    return _conclude(found, False, f"{reason} {_of_gaussian(*narrow)}", some=narrow[0])


def conclude_study(study):
    """Return what the runs of a study allow.

    Parameters
    ----------
    study : IdentifiabilityStudy
        Fitted.

    Returns
    -------
    Conclusion
    """
    table = study.table_
    found = _Found(table["transformation"], table["error"], table["chance"])
    stability = study.component_stability_
    if stability is None or found.best() is None or _axes(found):
        return _conclude(found, None, None)
    # Not by the efficiency: on the same rows, ICA agrees about axes of noise, too.
    n_stable, n_all = int(np.sum(stability >= STABLE)), len(stability)
    reason = (
        f"{n_stable} of {n_all} independent components of the consensus come back from "
        f"run to run (mean correlation at least {STABLE})"
    )
    if not n_stable:
        reason += ": the axes of ICA are arbitrary, or the runs too noisy to tell."
        return _conclude(found, False, reason)
    told, of = count_non_gaussian(study.embedding_)
    if told < of:
        reason += f". {_of_gaussian(told, of)}"
        return _conclude(found, False, reason, some=min(told, n_stable))
    if n_stable == n_all:
        return _conclude(found, True, f"{reason}: ICA finds the same axes every time.")
    reason += ": these axes of ICA may be interpreted, the others may not."
    return _conclude(found, False, reason, some=n_stable)


def count_non_gaussian(Z):
    """Return how many components of ICA are identified, and how many there are.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_columns)
        On 30,000 rows at most, evenly spread.

    Returns
    -------
    identified : int
        Those that the rows tell from Gaussian ones; a single Gaussian one is, too.
    components : int
    """
    Z = Z[:: -(-len(Z) // _MOST_ROWS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ica = WhitenICA(random_state=0).fit(Z)
    n_all = ica.n_components_
    n_gaussian = int(np.sum(ica.non_gaussianity_ < gaussian_level(n_all)))
    return n_all - n_gaussian * (n_gaussian > 1), n_all


def _of_gaussian(identified, n_all):
    return (
        f"But {n_all - identified} of {n_all} components of ICA cannot be told from "
        "Gaussian ones by these rows, and their axes are arbitrary."
    )


class _Found:
    """Errors and chance by transformation, and how they compare."""

    def __init__(self, names, error, chance):
        self.error = dict(zip(names, map(float, error), strict=True))
        self.chance = dict(zip(names, map(float, chance), strict=True))
        # How many times one side is as wide as the other.
        self.ratio = 1.0

    def part(self, name):
        """Return the error in parts of chance; infinite if it was not taken."""
        return self.error[name] / self.chance[name] if name in self.error else np.inf

    def is_far(self, name):
        """Whether the error is far below chance."""
        return self.part(name) < _FAR

    def best(self):
        """Return the transformation of the lowest error far below chance, or None."""
        name = min(self.error, key=self.part)
        return name if self.is_far(name) else None

    def is_near(self, name):
        """Whether no transformation of both sides at once has a much lower error."""
        others = [e for n, e in self.error.items() if n in ("rigid", "linear")]
        least = min(others, default=np.inf)
        return self.error[name] - least <= _SAME * self.chance[name]

    def said(self, name):
        return f"{self.error[name]:.3f} at a chance of {self.chance[name]:.3f}"


def _conclude(found, ica_axes, ica_reason, some=0):
    """Put together what errors say of axes and distances, and what ICA does."""
    if found.best() is None:
        return _nothing_shared(found)
    axes, distances, reasons = _axes(found), _distances(found), []
    if axes:
        reasons.append(
            f"The permutation error ({found.said('permutation')}) is within a tenth of "
            "chance of the lowest: they agree axis by axis."
        )
    if distances and not axes:
        reasons.append(
            f"The rigid error ({found.said('rigid')}) is far below chance"
            + (
                f", the permutation error ({found.said('permutation')}) is not as low: "
                "they agree up to a rotation."
                if axes is False
                else "."
            )
        )
    if distances is False and found.is_far("linear"):
        reasons.append(
            f"The linear error ({found.said('linear')}) is far below the rigid one "
            f"({found.error['rigid']:.3f}): they agree up to a shear or to scales, "
            "which change distances."
        )
        if found.ratio > _UNEQUAL:
            reasons.append(
                f"One side is {found.ratio:.3g} times as wide as the other, which may "
                "be all: divide each by its diameter, and compare again."
            )
    if axes is distances is None and "linear" in found.error:
        reasons.append(
            f"The linear error ({found.said('linear')}) is far below chance: they "
            "agree up to a linear map."
        )
    if ica_reason is not None:
        reasons.append(ica_reason)
    what = {"single axes": axes, "distances": distances}
    partly = some and not ica_axes
    some = f"{some} {'axis' if some == 1 else 'axes'} of ICA"
    what[some if partly else "the axes of ICA"] = True if partly else ica_axes
    return Conclusion(axes, distances, ica_axes, _headline(what), [*reasons, _NO_TRUTH])


def _axes(found):
    if "permutation" not in found.error:
        return None
    return found.is_far("permutation") and found.is_near("permutation")


def _distances(found):
    if "rigid" not in found.error:
        return None
    rigid, linear = found.error["rigid"], found.error.get("linear", np.inf)
    sheared = linear < _FAR * rigid and not found.is_near("rigid")
    return found.is_far("rigid") and not sheared


def _headline(what):
    yes = [name for name, may in what.items() if may]
    no = [name for name, may in what.items() if may is False]
    if not yes and not no:
        return "Neither axes nor distances were tested."
    if not yes:
        text = f"{' or '.join(no)} may not be interpreted."
    else:
        text = f"{' and '.join(yes)} may be interpreted"
        text += f"; {' and '.join(no)} may not." if no else "."
    return text[0].upper() + text[1:]


def _nothing_shared(found):
    """No map brings one side near the other."""
    name = min(found.error, key=found.part)
    lowest = f"(the lowest, {name}, is {found.said(name)})"
    axes = False if "permutation" in found.error else None
    distances = False if "rigid" in found.error else None
    headline = "Neither axes nor distances may be interpreted."
    if "linear" not in found.error:
        headline = _headline({"single axes": axes, "distances": distances})
        reason = (
            f"No error is far below chance {lowest}: they do not agree up to such "
            "maps; linear ones were not tested."
        )
    elif found.part(name) > _CHANCE:
        reason = (
            f"Every error equals chance {lowest}: the rows are most likely not in the "
            "same order. Sort all by the same ids, or join them by ids."
        )
    else:
        reason = (
            f"No error is far below chance {lowest}: the trainings learned different "
            "things, or the map between them is nonlinear."
        )
    return Conclusion(axes, distances, axes, headline, [reason])
