"""infomec_score beside a straightforward implementation, measured in the same run."""

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


def check(seconds, values, most):
    found = values["skident"]
    infom, infoc, nmi, active = values["peer, information"]
    np.testing.assert_allclose(found.nmi, nmi, atol=1e-10)
    np.testing.assert_array_equal(found.active, active)
    assert found.infom == pytest.approx(infom, abs=1e-10)
    assert found.infoc == pytest.approx(infoc, abs=1e-10)
    assert found.infoe == pytest.approx(values["peer, newton-cg probe"], abs=1e-7)
    peer = seconds["peer, information"] + seconds["peer, newton-cg probe"]
    assert seconds["skident"] < most * peer


@pytest.mark.slow
def test_a_third_of_the_time_on_many_rows(bench):
    check(*bench.compare(10_000), most=1 / 3)
