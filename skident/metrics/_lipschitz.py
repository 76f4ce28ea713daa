"""Distance of a decoder from an isometry."""

from numbers import Real

import numpy as np

from skident._math.lipschitz import bi_lipschitz_constant, singular_extremes
from skident._validation import as_rows


def bi_lipschitz(jacobians, *, quantile=0.0):
    r"""Return how far a map is from an isometry, up to one scalar.

    A decoder is locally (1 + L)-bi-Lipschitz if all singular values s of its Jacobian
    lie between 1 / (1 + L) and 1 + L. The scale of a representation is a convention: a
    decoder whose singular values are all 0.1 is as good as an isometry. So the latents
    are rescaled by the one scalar that makes L least, :math:`\sqrt{\max s \min s}`, and

    .. math:: 1 + L = \sqrt{\max s / \min s}

    with the extremes over all points.

    Parameters
    ----------
    jacobians : array-like of shape (n_samples, n_outputs, n_components)
        Derivatives of the outputs by the latents, such as
        ``AutoencoderEmbedder.decoder_jacobian`` returns at encoded test rows.
    quantile : float, default=0.0
        Fraction of points, in [0, 0.5), to leave out at either end: the extremes are
        then quantiles of the smallest and of the largest singular values of the points.
        0 is the constant of the theorem, which one odd point decides.

    Returns
    -------
    BiLipschitz
        Named tuple of ``L``, ``scale``, ``smallest``, ``largest`` and ``bound``, the
        last being :math:`\sqrt{2 L + L^2}`: two representations with such decoders
        agree under rigid maps up to a constant times it, in units of the latent
        diameter [1]_. L is infinite where the smallest singular value is 0 to the
        rounding of the type: about 2e-15 of the largest for float64, 1e-6 for float32.

    Raises
    ------
    ValueError
        For another number of dimensions, an empty axis, values that are not finite, a
        quantile out of its range, or Jacobians that are all zero.

    References
    ----------
    .. [1] Nelson, Fumero, Karaletsos and Locatello, "Statistical and structural
       identifiability in representation learning", ICLR 2026, arXiv:2603.11970,
       theorem 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skident.metrics import bi_lipschitz
    >>> stretched = np.diag([0.1, 0.4])[None]
    >>> result = bi_lipschitz(stretched)
    >>> round(result.L, 12), round(result.scale, 12)
    (1.0, 0.2)
    """
    if hasattr(jacobians, "detach"):  # a tensor
        shape, jacobians = tuple(jacobians.shape), jacobians.detach()
        if len(shape) == 3 and 0 not in shape:
            rows = as_rows(jacobians.reshape(shape[0], -1), name="jacobians")
            jacobians = rows.reshape(shape)
    try:
        jacobians = np.asarray(jacobians)
    except ValueError as error:
        raise ValueError("jacobians must be of one shape: some are not.") from error
    if jacobians.ndim != 3 or 0 in jacobians.shape:
        raise ValueError(
            "jacobians must have shape (n_samples, n_outputs, n_components), none of "
            f"them 0, got {jacobians.shape}."
        )
    if jacobians.dtype.kind not in "fiub":
        raise ValueError(f"jacobians must be real numbers, got {jacobians.dtype}.")
    if not isinstance(quantile, Real) or not 0 <= quantile < 0.5:
        raise ValueError(f"quantile must be in [0, 0.5), got {quantile!r}.")
    dtype = jacobians.dtype if jacobians.dtype in (np.float16, np.float32) else None
    jacobians = jacobians.astype(np.float64, copy=False)
    finite = np.isfinite(jacobians).all(axis=(1, 2))
    if not finite.all():
        raise ValueError(
            f"jacobians of sample {int(np.argmin(finite))} are not finite: all must be."
        )
    return bi_lipschitz_constant(*singular_extremes(jacobians, dtype), quantile)
