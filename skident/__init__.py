"""Stability and truth of representations, and mean-field structure of data.

Every public name is imported on first use (:pep:`562`): ``import skident`` itself
loads neither torch nor numba nor scikit-learn.
"""

import importlib

__version__ = "0.1.0"

_SUBMODULES = ("datasets", "exact", "metrics", "plotting")
_NAMES = {
    "AutoencoderEmbedder": "skident._autoencoder",
    "CondTotalCorrelation": "skident._cond_total_correlation",
    "HopfieldPatternDecoder": "skident._hopfield_decoder",
    "IdentifiabilityStudy": "skident._identifiability_study",
    "LayerEmbedder": "skident._layer_embedder",
    "LinearAligner": "skident._aligners",
    "MeanFieldVAE": "skident._mean_field_vae",
    "PermutationAligner": "skident._aligners",
    "RigidAligner": "skident._aligners",
    "WhitenICA": "skident._whiten_ica",
    "report": "skident._report",
    "show_versions": "skident._show_versions",
}

__all__ = [*sorted(_NAMES), "__version__", *_SUBMODULES]


def __getattr__(name):
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name in _SUBMODULES:
        return importlib.import_module(f"skident.{name}")
    raise AttributeError(f"module 'skident' has no attribute {name!r}")


def __dir__():
    return __all__
