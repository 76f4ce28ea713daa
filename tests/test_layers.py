"""The import contracts of setup.cfg hold, and each of them can break."""

import configparser
import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# They name or describe everything and import nothing of the package.
OUTSIDE = {"skident.__init__", "skident._show_versions"}


def read_contracts():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    prefix = "importlinter:contract:"
    return [config[s] for s in config.sections() if s.startswith(prefix)]


CONTRACTS = read_contracts()


def lint(folder):
    """Return the exit status and the report of import-linter, run in a folder."""
    code = "from importlinter.cli import lint_imports_command as c; c(['--no-cache'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={"COLUMNS": "1000", "PATH": ""},
    )
    return done.returncode, done.stdout + done.stderr


def verdicts(report):
    """Return {name of contract: "KEPT" or "BROKEN"}."""
    return dict(re.findall(r"^(.+?) (KEPT|BROKEN)", report, flags=re.MULTILINE))


def read_layers(contract):
    """Return the layers from the highest down, each a list of modules."""
    lines = contract["layers"].strip().splitlines()
    return [[name.strip() for name in line.split("|")] for line in lines]


def forbidden_pairs(contract):
    """Return (importer, imported) for all that a contract forbids side by side."""
    if contract["type"] == "forbidden":
        sources = contract["source_modules"].split()
        return list(itertools.product(sources, contract["forbidden_modules"].split()))
    layers = read_layers(contract)
    upward = [
        (low, high)
        for above, below in itertools.pairwise(layers)
        for low, high in itertools.product(below, above)
    ]
    beside = [pair for layer in layers for pair in itertools.permutations(layer, 2)]
    return upward + beside


def plant(folder, importer, imported):
    """Write an import at the head of a module of the copied package."""
    path = folder.joinpath(*importer.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    path.write_text(f"import {imported}\n{path.read_text()}")


@pytest.fixture
def copy(tmp_path):
    """Return a folder with a copy of the package and of its contracts."""
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    shutil.copytree(
        ROOT / "skident",
        tmp_path / "skident",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return tmp_path


def test_contracts_are_kept():
    status, report = lint(ROOT)
    assert verdicts(report) == {c["name"]: "KEPT" for c in CONTRACTS}, report
    assert len(CONTRACTS) > 5
    assert status == 0


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda c: c.name.split(":")[-1])
def test_contract_breaks_on_every_import_that_it_forbids(contract, copy):
    pairs = forbidden_pairs(contract)
    assert len(pairs) > 0
    for importer, imported in pairs:
        plant(copy, importer, imported)
    status, report = lint(copy)
    assert status != 0
    assert verdicts(report).get(contract["name"]) == "BROKEN", report
    for importer, imported in pairs:
        assert f"{importer} is not allowed to import {imported}" in report


def unlayered(folder):
    """Return the modules of a package that its layers contract does not name."""
    (contract,) = [c for c in CONTRACTS if c["type"] == "layers"]
    named = {name for layer in read_layers(contract) for name in layer}
    found = {f"skident.{path.stem}" for path in (folder / "skident").iterdir()}
    return found - named - OUTSIDE


def test_every_module_stands_in_a_layer(copy):
    assert unlayered(copy) == set()
    (copy / "skident" / "_stray.py").touch()
    assert unlayered(copy) == {"skident._stray"}
