import os
from pathlib import Path

import numpy as np
import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_folder():
    """Folder of the real data, or None where there is none."""
    folder = Path(os.environ.get("SKIDENT_TEST_DATA", _BESIDE))
    return folder if folder.is_dir() else None


@pytest.fixture
def real_data():
    """Loader of one file of real data by name; skips where the folder is absent."""
    folder = data_folder()
    if folder is None:
        pytest.skip("no real data: set SKIDENT_TEST_DATA to its folder")
    return lambda name: np.load(folder / name)


@pytest.fixture(autouse=True)
def _global_generators_untouched():
    """No test of this suite may move numpy's global generator."""
    before = np.random.get_state()  # noqa: NPY002
    yield
    after = np.random.get_state()  # noqa: NPY002
    assert np.array_equal(before[1], after[1]) and before[2:] == after[2:]
