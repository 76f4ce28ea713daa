"""Every public name has a complete docstring and a place in the API page."""

import doctest
import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

ROOT = Path(__file__).resolve().parents[1]
MODULES = [
    "skident",
    "skident.datasets",
    "skident.exact",
    "skident.metrics",
    "skident.plotting",
]
CHECKS = set(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"][
        "checks"
    ]
)


def public_names():
    """Return {dotted name: object} of all that the package publishes, no modules."""
    found = {}
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if callable(value):
                found[f"{module_name}.{name}"] = value
    return found


def public_methods(dotted, value):
    """Return the dotted names of the public methods that skident itself defines."""
    if not inspect.isclass(value):
        return []
    owners = [c for c in value.__mro__ if c.__module__.startswith("skident")]
    members = {name: m for owner in owners for name, m in vars(owner).items()}
    return [
        f"{dotted}.{name}"
        for name, member in sorted(members.items())
        if not name.startswith("_")
        and (inspect.isroutine(member) or isinstance(member, property))
    ]


def documented_names():
    """Return the dotted names listed in the API page, by current module."""
    module, listing, names = "skident", False, []
    for line in (ROOT / "doc" / "api.rst").read_text().splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif re.match(r"\S", line):
            listing = line.startswith(".. autosummary::")
        elif listing and (match := re.match(r"   ([A-Za-z_]\w*)$", line)):
            names.append(f"{module}.{match[1]}")
    return names


def breaches(dotted):
    """Return what numpydoc finds wrong, among the checks of pyproject.toml.

    The fields of a named tuple stand under Attributes: it is read, not constructed.
    """
    errors = [error for error in validate(dotted)["errors"] if error[0] in CHECKS]
    fields = getattr(PUBLIC.get(dotted), "_fields", None)
    if fields is None:
        return errors
    attributes = NumpyDocString(inspect.getdoc(PUBLIC[dotted]))["Attributes"]
    names = {name for a in attributes for name in a.name.split(", ")}
    missing = set(fields) - names
    errors = [error for error in errors if error[0] != "PR01"]
    return [*errors, *(("field", name) for name in sorted(missing))]


PUBLIC = public_names()
DOCUMENTED = [
    *PUBLIC,
    *(
        method
        for name, value in PUBLIC.items()
        for method in public_methods(name, value)
    ),
]


def test_the_lists_are_not_empty():
    assert len(CHECKS) > 10
    assert "skident.WhitenICA" in PUBLIC
    assert "skident.WhitenICA.fit" in DOCUMENTED
    assert "skident.metrics.alignment_errors" in PUBLIC


@pytest.mark.parametrize("dotted", DOCUMENTED)
def test_docstring_is_complete(dotted):
    assert breaches(dotted) == []


def undocumented(a):
    """Return a number."""
    return a


class Pair(NamedTuple):
    """Two numbers.

    Attributes
    ----------
    first : float
        The first number.
    """

    first: float
    second: float


def test_incomplete_docstrings_are_seen(monkeypatch):
    monkeypatch.setattr("skident.undocumented", undocumented, raising=False)
    assert {code for code, _ in breaches("skident.undocumented")} == {"PR01", "RT01"}
    monkeypatch.setattr("skident.Pair", Pair, raising=False)
    monkeypatch.setitem(PUBLIC, "skident.Pair", Pair)
    assert breaches("skident.Pair") == [("field", "second")]


def test_api_page_lists_every_public_name_once():
    assert sorted(documented_names()) == sorted(PUBLIC)


SNIPPETS = [
    page
    for page in sorted((ROOT / "doc" / "user_guide").glob("*.rst"))
    if ">>> " in page.read_text()
]


@pytest.mark.slow
@pytest.mark.parametrize("page", SNIPPETS, ids=lambda page: page.stem)
def test_snippets_of_the_guide(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert found.attempted > 0 and found.failed == 0
