"""What a probe of left-out batches found."""

from typing import NamedTuple

import numpy as np

from skident._math.information import Estimate
from skident._math.resampling import percentile_interval


class ProbeTransfer(NamedTuple):
    """Score of a probe on batches it has not seen, and shares of the variation.

    Attributes
    ----------
    score : Estimate
        Balanced accuracy of all left-out rows: value, lower and upper end.
    chance : float
        Balanced accuracy of guessing: 1 / number of labels.
    auroc : Estimate or None
        With two labels: area under the ROC curve within batches, weighted by their
        numbers of pairs. None with more labels, or where no batch has both.
    batch_names : ndarray of shape (n_batches,)
        Batches that were left out once.
    batch_scores : ndarray of shape (n_batches,)
        Balanced accuracy over the labels that occur in each.
    batch_sizes : ndarray of shape (n_batches,)
        Rows scored in each.
    label_names : ndarray of shape (n_labels,)
        Labels that were scored.
    label_scores : ndarray of shape (n_labels,)
        Part of the rows of each that was predicted right.
    left_out : tuple
        Labels that occur in one batch only, and so were not scored.
    batch_share : float or None
        Share of the variation of the features between batches, in [0, 1]; None if
        batches and labels leave no degree of freedom.
    label_share : float or None
        Share between labels within batches, in [0, 1].
    top_share : float or None
        Part of the label shares that the top features hold, in [top_fraction, 1]; None
        where labels explain nothing.
    feature_label_shares : ndarray of shape (n_features,) or None
        Label share of each feature, not clipped: below 0 is less than chance.
    probe : str
        Name of the probe.
    top_fraction : float
        Part of the features that count as top.
    confidence_level : float
        Of the intervals.
    """

    score: Estimate
    chance: float
    auroc: Estimate | None
    batch_names: np.ndarray
    batch_scores: np.ndarray
    batch_sizes: np.ndarray
    label_names: np.ndarray
    label_scores: np.ndarray
    left_out: tuple
    batch_share: float | None
    label_share: float | None
    top_share: float | None
    feature_label_shares: np.ndarray | None
    probe: str
    top_fraction: float
    confidence_level: float

    def __str__(self):
        low, high = self.score.low, self.score.high
        lines = [
            f"{self.probe} probe on {len(self.batch_names)} left-out batches: balanced "
            f"accuracy {self.score.value:.3f} [{low:.3f}, {high:.3f}], chance "
            f"{self.chance:.3f}"
        ]
        if self.auroc is not None:
            value, low, high = self.auroc
            lines.append(f"AUROC within batches {value:.3f} [{low:.3f}, {high:.3f}]")
        if self.batch_share is not None:
            lines.append(
                f"variation between batches {self.batch_share:.1%}, between labels "
                f"within batches {self.label_share:.1%}"
            )
        if self.top_share is not None:
            lines.append(
                f"of the latter, in the top {self.top_fraction:.0%} of features: "
                f"{self.top_share:.1%}"
            )
        if self.left_out:
            lines.append(f"not scored (one batch only): {len(self.left_out)} label(s)")
        return "\n".join(lines)


def scores(parts, n_resamples, confidence_level, rng):
    """Return the scores of all rows left out, and their intervals over batches.

    Parameters
    ----------
    parts : list of (true labels, predicted labels, AUROC, number of pairs)
        One a batch; labels are ints, of which the same ones occur in all batches
        together as in the predictions.
    n_resamples : int
        Resamples of batches.
    confidence_level : float
        Of the intervals.
    rng : Generator
        Draws the resamples.

    Returns
    -------
    score : Estimate
        Balanced accuracy.
    chance : float
        1 / number of labels.
    auroc : Estimate or None
        Within batches.
    batch_scores, batch_sizes : ndarray of shape (n_batches,)
        Balanced accuracy and rows of each batch.
    label_scores : ndarray of shape (n_labels,)
        Part of the rows of each label that is right.
    """
    labels = np.unique(np.concatenate([truth for truth, *_ in parts]))
    rows, right = np.zeros((2, len(parts), len(labels)), dtype=int)
    for k, (truth, predicted, *_) in enumerate(parts):
        places = np.searchsorted(labels, truth)
        rows[k] = np.bincount(places, minlength=len(labels))
        hits = places[truth == predicted]
        right[k] = np.bincount(hits, minlength=len(labels))
    even = np.full(len(parts), 1 / len(parts))
    counts = rng.multinomial(len(parts), even, n_resamples)
    draws = balanced_accuracy(counts @ right, counts @ rows)
    total_right, total = right.sum(axis=0), rows.sum(axis=0)
    value = float(balanced_accuracy(total_right, total))
    return (
        Estimate(value, *_interval(draws, confidence_level)),
        1.0 / len(labels),
        _auroc(parts, counts, confidence_level),
        balanced_accuracy(right, rows),
        rows.sum(axis=1),
        total_right / total,
    )


def balanced_accuracy(right, rows):
    """Return the mean of ``right / rows`` along the last axis over labels with rows."""
    parts = right / np.maximum(rows, 1)
    return parts.sum(axis=-1) / (rows > 0).sum(axis=-1)


def _interval(draws, confidence_level):
    return (float(end) for end in percentile_interval(draws, confidence_level))


def _auroc(parts, counts, confidence_level):
    """Return the AUROC within batches, or None without a batch of both labels."""
    areas, pairs = np.array([part[2:] for part in parts]).T
    if not pairs.any():
        return None
    drawn = counts @ pairs
    value = float(areas @ pairs / pairs.sum())
    # A resample without any pair says nothing: it counts as the value.
    draws = np.full(len(counts), value)
    np.divide(counts @ (areas * pairs), drawn, out=draws, where=drawn > 0)
    return Estimate(value, *_interval(draws, confidence_level))
