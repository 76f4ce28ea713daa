"""Sphinx configuration: no network, at build time or at view time."""

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import skident

project = "skident"
author = "The skident developers"
copyright = "The skident developers"
version = release = skident.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "build_time_math",
]
html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"skident {version}"
templates_path = ["_templates"]
exclude_patterns = ["_build"]
nitpicky = False

autosummary_generate = True
autodoc_typehints = "none"
# The class template lists methods itself.
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_.*\.py$",
    # Benchmarks compare with peers and are no part of the gallery.
    "ignore_pattern": r"(__init__|bench_.*)\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "reference_url": {},
}

# The figures are written to files, so that "cannot show" says nothing.
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")
