"""infomec_score equals a straightforward implementation, on many rows."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).parents[2] / "examples" / "benchmarks" / "bench_infomec.py"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("bench_infomec", BENCH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_values_are_those_of_the_peer(bench):
    """The times stand in the benchmark: a busy machine says nothing of them."""
    _, values = bench.compare(10_000)
    found = values["skident"]
    infom, infoc, nmi, active = values["peer, information"]
    np.testing.assert_allclose(found.nmi, nmi, atol=1e-10)
    np.testing.assert_array_equal(found.active, active)
    assert found.infom == pytest.approx(infom, abs=1e-10)
    assert found.infoc == pytest.approx(infoc, abs=1e-10)
    assert found.infoe == pytest.approx(values["peer, newton-cg probe"], abs=1e-7)
