"""The rules of the house: what may be imported, written and published where."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import skident

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "skident").rglob("*.py"))
SUBPACKAGES = ["datasets", "exact", "metrics", "plotting"]
HEAVY = ["sklearn", "scipy", "torch", "skorch", "numba", "matplotlib", "tqdm"]
RANDOM_ALLOWED = {"default_rng", "Generator", "SeedSequence", "get_state"}
MAX_LINES = 300  # docstrings aside: they are as long as they need to be


def seconds_and_heavy(statement):
    """Run a statement in a new process: its seconds, the heavy packages loaded."""
    code = (
        f"import sys, time; start = time.perf_counter(); {statement}\n"
        f"print(time.perf_counter() - start, *set({HEAVY}) & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    seconds, *loaded = done.stdout.split()
    return float(seconds), loaded


def test_import_is_light_and_quick():
    seconds, loaded = seconds_and_heavy("import skident; dir(skident)")
    assert loaded == []
    assert seconds < 1


def test_heaviness_and_slowness_would_be_seen():
    seconds, loaded = seconds_and_heavy("import scipy; time.sleep(1)")
    assert loaded == ["scipy"]
    assert seconds > 1


def test_every_public_name_resolves():
    assert set(skident.__all__) == set(dir(skident))
    for name in skident.__all__:
        assert getattr(skident, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Missing'"):
        skident.Missing  # noqa: B018


@pytest.mark.parametrize("name", SUBPACKAGES)
def test_every_name_of_a_subpackage_resolves(name):
    module = importlib.import_module(f"skident.{name}")
    assert len(set(module.__all__)) == len(module.__all__)
    for public in module.__all__:
        assert getattr(module, public) is not None


# Rules for source text. Each takes a syntax tree and yields what breaks the rule.


def imported_names(tree):
    """Yield (module, name or None) of every import statement."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from ((node.module, alias.name) for alias in node.names)


def dotted_names(tree):
    """Yield every attribute chain of plain names, such as ``np.random.seed``."""
    for node in ast.walk(tree):
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if parts and isinstance(node, ast.Name):
            yield ".".join([node.id, *reversed(parts)])


def private_sklearn_names(tree):
    imported = (f"{m}.{n}" if n else m for m, n in imported_names(tree))
    for dotted in [*imported, *dotted_names(tree)]:
        first, *rest = dotted.split(".")
        private = [p for p in rest if p.startswith("_") and not p.endswith("__")]
        if first == "sklearn" and private:
            yield dotted


def relative_imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            yield "." * node.level + (node.module or "")


def print_calls(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "print":
            yield f"print, line {node.lineno}"


def global_random_functions(tree):
    imported = (f"{m}.{n}" if n else m for m, n in imported_names(tree))
    for dotted in [*imported, *dotted_names(tree)]:
        parts = dotted.split(".")
        if parts[0] in ("np", "numpy") and parts[1:2] == ["random"] and parts[2:]:
            if parts[2] not in RANDOM_ALLOWED:
                yield dotted


RULES = {
    private_sklearn_names: {"_compat.py"},
    relative_imports: set(),
    print_calls: {"__main__.py"},
    global_random_functions: set(),
}
BREACHES = [
    (private_sklearn_names, "from sklearn.base import _fit_context"),
    (private_sklearn_names, "from sklearn.utils._param_validation import Interval"),
    (private_sklearn_names, "import sklearn.utils._testing"),
    (private_sklearn_names, "import sklearn\nx = sklearn.base._fit_context(f)"),
    (relative_imports, "from . import metrics"),
    (relative_imports, "from ._random import draw_seed"),
    (print_calls, "print('a')"),
    (global_random_functions, "import numpy as np\nnp.random.seed(0)"),
    (global_random_functions, "x = numpy.random.rand(3)"),
    (global_random_functions, "from numpy.random import normal"),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_sources_keep_the_rule(rule):
    assert len(SOURCES) > 20
    for path in SOURCES:
        if path.name not in RULES[rule]:
            assert list(rule(ast.parse(path.read_text()))) == [], path


@pytest.mark.parametrize(("rule", "code"), BREACHES)
def test_rule_sees_a_breach(rule, code):
    assert len(list(rule(ast.parse(code)))) > 0


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_lets_honest_code_pass(rule):
    code = (
        "import sklearn\nfrom sklearn.base import BaseEstimator\n"
        "import numpy as np\nrng = np.random.default_rng(0)\nrng.random(3)\n"
        "version = sklearn.__version__\n"
    )
    assert list(rule(ast.parse(code))) == []


def test_the_private_names_stand_in_compat():
    tree = ast.parse((ROOT / "skident" / "_compat.py").read_text())
    assert len(list(private_sklearn_names(tree))) > 0


def code_lines(source):
    """Number of lines that stand in no docstring."""
    total = len(source.splitlines())
    for node in ast.walk(ast.parse(source)):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            total -= node.body[0].end_lineno - node.body[0].lineno + 1
    return total


def test_docstrings_are_not_counted_as_code():
    source = '"""One\ntwo."""\n\n\ndef f():\n    """Three."""\n    return 1\n'
    assert code_lines(source) == 4


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_file_is_short(path):
    assert code_lines(path.read_text()) <= MAX_LINES
