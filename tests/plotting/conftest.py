import matplotlib
import pytest
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def _no_window_and_no_figure_left():
    before = matplotlib.get_backend()
    plt.switch_backend("Agg")
    yield
    plt.close("all")
    plt.switch_backend(before)
