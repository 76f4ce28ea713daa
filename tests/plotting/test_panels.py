import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt

from skident.plotting import PatternDisplay, TotalCorrelationDisplay, draw_together

PATTERNS = np.array([[1, 1, -1, -1], [1, -1, 1, -1]])
PREAMBLE = """
import sys
import numpy as np
from skident.metrics import alignment_errors
from skident import plotting
Z = np.random.default_rng(0).normal(size=(30, 2))
displays = [
    plotting.AlignmentDisplay(alignment_errors(Z, Z, n_resamples=9, random_state=0)),
    plotting.PatternDisplay([[1, -1]]),
    plotting.TotalCorrelationDisplay(np.eye(2)),
]
"""


def run_python(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_matplotlib_is_loaded_by_drawing_alone():
    loaded = "print('matplotlib' in sys.modules)\n"
    code = f"{PREAMBLE}{loaded}displays[1].plot()\n{loaded}"
    assert run_python(code) == ["False", "True"]


def test_without_matplotlib_the_extra_is_named():
    lines = run_python(
        f"import sys\nsys.modules['matplotlib'] = None\n{PREAMBLE}"
        "draws = [display.plot for display in displays]\n"
        "draws.append(lambda: plotting.draw_together(displays[1]))\n"
        "for draw in draws:\n"
        "    try:\n"
        "        draw()\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    assert len(lines) == 4
    assert all('pip install "skident[plot]"' in line for line in lines)


def test_displays_are_drawn_below_one_another():
    pattern = PatternDisplay(PATTERNS, shape=(2, 2))
    litmus = TotalCorrelationDisplay(np.eye(4))
    figure = draw_together(pattern, litmus, title="both")
    assert pattern.figure_ is figure
    assert litmus.figure_ is figure
    assert figure.get_suptitle() == "both"
    figure.canvas.draw()
    upper = min(ax.get_window_extent().y0 for ax in pattern.axes_)
    lower = max(ax.get_window_extent().y1 for ax in litmus.axes_)
    assert lower < upper
    assert len(plt.get_fignums()) == 1


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="at least one display"):
        draw_together()


def test_what_is_no_display_is_refused():
    display = PatternDisplay(np.array([[1, -1]]))
    with pytest.raises(
        TypeError, match=r"one by one, got list: pass draw_together\(\*"
    ):
        draw_together([display])
