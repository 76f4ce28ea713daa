"""A kernel must load where nothing can be cached: read-only install, no home."""

import ctypes
import importlib
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import numpy as np
import pytest

import skident
from skident.datasets import make_curie_weiss

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1

UNGUARDED = """
import numba

@numba.njit(cache=True)
def unguarded(x):
    return x + 1
"""


def obey_mode_bits():
    """Make the mode bits of files count for root too, from the next exec on."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


@pytest.fixture
def read_only_install(tmp_path):
    """A copy of the package in folders that cannot be written."""
    package = tmp_path / "skident"
    shutil.copytree(
        Path(skident.__file__).parent,
        package,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (package / "_kernels" / "unguarded.py").write_text(UNGUARDED)
    folders = [tmp_path, *(p for p in package.rglob("*") if p.is_dir()), package]
    for folder in folders:
        folder.chmod(0o555)
    yield tmp_path
    for folder in folders:
        folder.chmod(0o755)


@pytest.fixture
def run_there(read_only_install):
    def run(script):
        drop = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
        environment = {k: v for k, v in os.environ.items() if k not in drop}
        environment |= {"HOME": "/dev/null", "PYTHONDONTWRITEBYTECODE": "1"}
        environment["PYTHONPATH"] = str(read_only_install)
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            capture_output=True, text=True, timeout=300, env=environment,
            cwd="/", preexec_fn=obey_mode_bits,
        )  # fmt: skip

    return run


@pytest.mark.skipif(sys.platform != "linux", reason="drops a Linux capability")
def test_kernels_work_where_nothing_can_be_written(run_there, read_only_install):
    done = run_there("""
        import skident
        print(skident.__file__)
        from skident.datasets import make_curie_weiss
        X, _ = make_curie_weiss(5, 12, temperature=1.0, random_state=0)
        print(X.ravel().tolist())
    """)
    assert done.returncode == 0, done.stderr
    place, values = done.stdout.splitlines()
    assert place.startswith(str(read_only_install))
    X, _ = make_curie_weiss(5, 12, temperature=1.0, random_state=0)
    assert values == str(X.ravel().tolist())
    assert not list(read_only_install.rglob("__pycache__"))


@pytest.mark.skipif(sys.platform != "linux", reason="drops a Linux capability")
def test_an_unguarded_cache_fails_there(run_there):
    # Without this the test above would prove nothing.
    done = run_there("import skident._kernels.unguarded")
    assert done.returncode != 0
    assert "cannot cache function" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="drops a Linux capability")
def test_every_sampler_works_where_nothing_can_be_written(run_there):
    script = """
        import numpy as np
        from skident.datasets import (
            make_curie_weiss, make_hopfield, make_ising, make_maier_saupe,
            make_patterns, make_spin_glass,
        )

        patterns = make_patterns(3, 70, random_state=0)
        links = np.diag(np.ones(5), 1)
        draws = [
            make_curie_weiss(2, 6, temperature=1.0, random_state=0),
            *(make_hopfield(2, patterns, temperature=0.8, method=m, random_state=0)
              for m in ("exact", "tempering")),
            *(make_ising(2, (3, 4), temperature=2.5, method=m, random_state=0)
              for m in ("exact", "swendsen-wang", "wolff", "multispin", "heat-bath")),
            make_spin_glass(2, links + links.T, temperature=1.0, random_state=0),
            *(make_maier_saupe(2, 3, temperature=0.3, method=m, random_state=0)
              for m in ("exact", "block-gibbs")),
        ]
        print([X.round(6).tolist() for X, _ in draws])
    """
    there = run_there(script)
    assert there.returncode == 0, there.stderr
    here = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert there.stdout == here.stdout


def kernels():
    """Every compiled function of the package."""
    folder = Path(skident.__file__).parent / "_kernels"
    for path in sorted(folder.glob("[!_]*.py")):
        module = importlib.import_module(f"skident._kernels.{path.stem}")
        for name, value in vars(module).items():
            if isinstance(value, numba.core.dispatcher.Dispatcher):
                yield f"{path.stem}.{name}", value


def test_every_kernel_releases_the_lock_and_is_serial():
    found = dict(kernels())
    assert len(found) > 50
    for name, function in found.items():
        options = function.targetoptions
        assert options["nogil"], name
        assert not options.get("parallel", False), name


def test_division_by_zero_is_that_of_numpy():
    from skident._kernels.jit import kernel

    @kernel
    def divide(a, b):
        return a / b

    assert divide(1.0, 0.0) == np.inf


def test_cache_lies_in_the_user_s_folder_and_not_in_the_package(tmp_path):
    """An uninstall could not remove it from the package, whose name then lives on."""
    package = tmp_path / "install" / "skident"
    shutil.copytree(
        Path(skident.__file__).parent,
        package,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(package.parent),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    environment.pop("NUMBA_CACHE_DIR", None)
    code = (
        "import numba; before = numba.config.CACHE_DIR;"
        "import skident.datasets as d; print(d.__file__);"
        "d.make_curie_weiss(3, 4, temperature=1.0);"
        "assert numba.config.CACHE_DIR == before"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(package))
    assert not list(package.rglob("*.nbi"))
    assert list((tmp_path / "cache" / "skident").rglob("*.nbi"))
