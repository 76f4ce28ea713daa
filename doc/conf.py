"""Sphinx configuration: no network, at build time or at view time."""

import re
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
    # The page of times loads scripts from the network.
    "write_computation_times": False,
    "reference_url": {},
}

# The figures are written to files, so that "cannot show" says nothing.
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")


def skip_foreign_members(app, what, name, obj, skip, options):
    """List of a class the methods that skident defines, not those of scikit-learn."""
    ours = (getattr(obj, "__module__", None) or "").startswith("skident")
    return None if ours or what != "class" else True


def escape_shapes(app, what, name, obj, options, lines):
    """Keep ``n_iter_`` in the shape of an array from being read as a reference."""
    for number, line in enumerate(lines):
        lines[number] = re.sub(
            r"shape \([^)]*", lambda match: re.sub(r"_(?=\W|$)", r"\_", match[0]), line
        )


def setup(app):
    """Connect the two handlers, the second one behind numpydoc's."""
    app.connect("autodoc-skip-member", skip_foreign_members)
    app.connect("autodoc-process-docstring", escape_shapes, priority=900)
