import subprocess
import sys

import numpy as np
import pytest

from skident import __main__ as story

WITHOUT_MATPLOTLIB = """
import sys
from pathlib import Path
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
import numpy as np
from skident.metrics import alignment_errors
from skident.plotting import AlignmentDisplay, PatternDisplay, TotalCorrelationDisplay
from skident.__main__ import save_figures
Z = np.random.default_rng(0).laplace(size=(100, 2))
displays = (
    TotalCorrelationDisplay(np.eye(4), shape=(2, 2)),
    PatternDisplay(np.ones((1, 4), int)),
    AlignmentDisplay(alignment_errors(Z, Z, random_state=0)),
)
print(save_figures(displays, Path("out")))
"""


def run(*command, folder):
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=400,
    )


def test_help_explains_the_options(tmp_path):
    done = run("-m", "skident", "--help", folder=tmp_path)
    assert done.returncode == 0
    for option in ("--seed", "--output-dir", "--quick"):
        assert option in done.stdout


@pytest.mark.parametrize("wrong", [["--seed", "-1"], ["--seed", "x"], ["--nonsense"]])
def test_wrong_options_are_refused_with_a_reason(wrong, tmp_path):
    done = run("-m", "skident", *wrong, folder=tmp_path)
    assert done.returncode == 2 and "error:" in done.stderr


def test_counting_exact_patterns():
    patterns = np.array([[1, 1, -1], [1, -1, 1]], dtype=np.int8)
    assert story.count_exact(-patterns[::-1], patterns) == 2
    assert story.count_exact(patterns[:1], patterns) == 1
    assert story.count_exact(np.array([[1, 1, 1]]), patterns) == 0
    assert story.count_exact(np.empty((0, 3)), patterns) == 0


def test_without_matplotlib_one_line_says_how_to_get_figures(tmp_path):
    done = run("-c", WITHOUT_MATPLOTLIB, folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == 1
    assert 'pip install "skident[plot]"' in done.stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_quick_story(tmp_path):
    done = run("-m", "skident", "--quick", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "from the decoder                      4 of 4" in done.stdout
    assert len(list((tmp_path / "skident-report").iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_story_comes_out_for_every_seed(seed, tmp_path):
    done = run(
        "-m", "skident", "--seed", str(seed), "--output-dir", "out", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = done.stdout
    assert "from the decoder                      4 of 4" in report
    assert report.index('"mean-field"') < report.index('"not mean-field"')
    for name in ("permutation", "rigid", "linear", "ica", "ICA efficiency"):
        assert name in report
    saved = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert saved == ["alignment.png", "mean_field.png"]
    assert "mean-field VAE: 100%" in done.stderr  # progress
