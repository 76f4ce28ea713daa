import base64
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from skident import (
    AutoencoderEmbedder,
    CondTotalCorrelation,
    IdentifiabilityStudy,
    MeanFieldVAE,
    WhitenICA,
    report,
)
from skident._conclusion import conclude_pair, conclude_study
from skident._report import litmus_table
from skident.datasets import make_curie_weiss
from skident.metrics import alignment_errors

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:On .* held-out rows:UserWarning")
EVIL = '<script>alert("1")</script> & more'


@pytest.fixture(scope="module")
def rows():
    X, _ = make_curie_weiss(300, 6, temperature=0.8, random_state=0)
    return pd.DataFrame(X, columns=[EVIL, "b", "c", "d", "e", "f"])


def fit(rows, **options):
    model = MeanFieldVAE(1, hidden_layer_sizes=(8,), max_epochs=10)
    test = CondTotalCorrelation(model, n_resamples=100, random_state=0, **options)
    return test.fit(rows)


@pytest.fixture(scope="module")
def fitted(rows):
    pytest.importorskip("matplotlib").use("Agg")
    return fit(rows, shape=(2, 3))


class Page(HTMLParser):
    """Texts by tag, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.images, self.links = [], {}, [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in {"src", "href"}]
        if tag == "img":
            self.images.append(dict(attrs)["src"])
        elif tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def test_page_says_what_the_test_found(fitted, tmp_path):
    path = report(fitted, tmp_path / "page.html")
    assert path == tmp_path / "page.html"
    page = Page(path.read_text())
    assert page.open == [] and page.texts["title"] == ["skident report"]
    assert fitted.verdict_ in page.texts["p"]
    assert [t for t in page.texts["li"] if t.strip()] == fitted.reasons_
    cells = page.texts["td"]
    for estimate in (fitted.total_correlation_, fitted.unexplained_fraction_):
        assert f"{estimate.value:.4g}" in cells
        assert f"{estimate.low:.4g} to {estimate.high:.4g}" in cells
    assert f"{fitted.rate_:.4g}" in cells and fitted.capacity_ in cells
    # the bounds are not known without an entropy
    assert not any("ELBO" in cell for cell in cells)


def test_page_holds_its_picture_and_loads_nothing(fitted, tmp_path):
    page = Page(report(fitted, tmp_path / "page.html").read_text())
    (image,) = page.images
    assert page.links == [image]
    kind, data = image.split(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data).startswith(b"\x89PNG")


def test_everything_shown_is_escaped(fitted, tmp_path):
    path = report({EVIL: fitted, "b": fitted}, tmp_path / "page.html", title=EVIL)
    text = path.read_text()
    assert "<script" not in text and EVIL not in text
    page = Page(text)
    # the title, the heading of a section and of a row, and a column
    for tag in ("title", "h1", "h2", "td"):
        assert EVIL in "".join(page.texts[tag])


def test_worst_pairs_are_the_largest_residual_correlations(fitted, tmp_path):
    page = Page(report(fitted, tmp_path / "page.html").read_text())
    covariance = fitted.residual_covariance_
    deviation = np.sqrt(np.diag(covariance))
    correlation = np.abs(np.triu(covariance / np.outer(deviation, deviation), 1))
    first, second = np.unravel_index(correlation.argmax(), correlation.shape)
    shown = [cell for cell in page.texts["td"] if re.fullmatch(r"[+-]0\.\d{3}", cell)]
    assert len(shown) == 5
    assert abs(float(shown[0])) == pytest.approx(correlation.max(), abs=5e-4)
    names = fitted.feature_names_in_
    assert {names[first], names[second]} <= set(page.texts["td"])


def test_equal_fits_give_equal_pages(fitted, rows, tmp_path):
    again = fit(rows, shape=(2, 3))
    pages = [
        report(one, tmp_path / "page.html").read_bytes() for one in (fitted, again)
    ]
    assert pages[0] == pages[1]


def test_several_are_compared_in_a_table(fitted, tmp_path):
    page = Page(report({"one": fitted, "two": fitted}, tmp_path / "p.html").read_text())
    assert "Compared" in page.texts["caption"]
    assert len(page.images) == 2
    head, (first, second) = litmus_table({"one": fitted, "two": fitted})
    assert len(head) == len(first) and first[0] == "one" and first[1:] == second[1:]


def test_entropy_adds_its_bounds(rows, tmp_path):
    text = report(fit(rows, entropy=2.0), tmp_path / "page.html").read_text()
    assert "Upper bound -ELBO - H(p)" in text and "Upper bound of u" in text


def test_one_column_has_no_picture(rows, tmp_path):
    page = Page(report(fit(rows[["b"]]), tmp_path / "page.html").read_text())
    assert page.images == [] and "mean-field" in page.texts["p"]


def test_what_there_is_no_page_for_is_named(fitted, tmp_path):
    path = tmp_path / "page.html"
    with pytest.raises(TypeError, match="no report of WhitenICA"):
        report(WhitenICA(), path)
    with pytest.raises(TypeError, match="no report of int"):
        report({"one": fitted, "two": 3}, path)
    with pytest.raises(ValueError, match="empty dict"):
        report({}, path)
    with pytest.raises(NotFittedError):
        report(CondTotalCorrelation(), path)
    with pytest.raises(OSError, match="nowhere"):
        report(fitted, tmp_path / "nowhere" / "page.html")
    assert not path.exists()


WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
import numpy as np
from skident import CondTotalCorrelation, MeanFieldVAE, report
model = MeanFieldVAE(1, hidden_layer_sizes=(4,), max_epochs=2)
X = np.arange(80).reshape(20, 4) * 7 % 5 > 2
test = CondTotalCorrelation(model, n_resamples=100, random_state=0).fit(X)
print(report(test, "page.html").read_text())
"""


def test_without_matplotlib_the_page_says_how_to_get_the_picture(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_MATPLOTLIB],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    page = Page(done.stdout)
    assert page.images == []
    assert any("skident[plot]" in text for text in page.texts["p"])


# Alignment errors and studies.


@pytest.fixture(scope="module")
def runs():
    pytest.importorskip("matplotlib").use("Agg")
    rng = np.random.default_rng(0)
    Z = rng.laplace(size=(150, 2))
    turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
    return [Z, Z @ turn, Z @ turn.T + 0.1 * rng.normal(size=Z.shape)]


def align(runs, **options):
    return alignment_errors(runs[0], runs[2], n_resamples=50, random_state=0, **options)


def study_of(runs, *factors, **options):
    options = {"n_resamples": 50, "random_state": 0, **options}
    return IdentifiabilityStudy.from_embeddings(runs, *factors, **options)


def write(fitted, folder, **options):
    return Page(report(fitted, folder / "page.html", **options).read_text())


def test_page_of_alignment_errors(runs, tmp_path):
    errors = align(runs)
    page = write(errors, tmp_path)
    conclusion = conclude_pair(errors)
    assert page.open == [] and conclusion.headline in page.texts["p"]
    items = page.texts["li"]
    assert set(conclusion.reasons) <= set(items)
    # what is printed below the table
    assert set(str(errors).splitlines()[5:]) <= set(items)
    cells = page.texts["td"]
    for name in ("error", "forward", "backward", "chance", "expected_error"):
        for value in getattr(errors, name):
            assert f"{value:.3f}" in cells
    for low, high in errors.interval:
        assert f"{low:.3f} to {high:.3f}" in cells
    assert len(page.images) == 2 and page.links == page.images


def test_errors_without_a_curve_have_one_picture(runs, tmp_path):
    errors = align(runs, train_fractions=None, transformations=["rigid"])
    page = write(errors, tmp_path)
    assert len(page.images) == 1
    assert not any("any number of rows" in text for text in page.texts["th"])


def test_page_of_a_study(runs, tmp_path):
    study = study_of(runs, runs[0])
    page = write(study, tmp_path)
    conclusion = conclude_study(study)
    assert page.open == [] and conclusion.headline in page.texts["p"]
    assert set(conclusion.reasons) <= set(page.texts["li"])
    captions = {"Errors", "Against the factors", "Runs", "Pairs"}
    assert captions == set(page.texts["caption"]) - {"\n"}
    cells, table = page.texts["td"], study.table_
    for name in ("error", "chance"):
        assert all(f"{value:.3f}" in cells for value in table[name])
    for kind in ("", "run_"):
        ends = zip(table[f"{kind}lower"], table[f"{kind}upper"], strict=True)
        assert all(f"{low:.3f} to {high:.3f}" in cells for low, high in ends)
    for values in (study.run_table_["mcc_ica"], study.pair_table_["linear"]):
        assert all(f"{value:.3f}" in cells for value in values)
    assert {"0 and 1", "0 and 2", "1 and 2", "InfoM", "MCC after ICA"} <= set(cells)
    assert len(page.images) == 1
    assert "pre" not in page.texts  # there is no model to show


def test_page_of_a_trained_study(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = AutoencoderEmbedder(2, hidden_layer_sizes=(4,), max_epochs=2)
    study = IdentifiabilityStudy(
        model, n_runs=2, transformations=["rigid"], n_resamples=20, random_state=0
    )
    page = write(study.fit(X), tmp_path)
    assert any(f"{study.bound_:.3g} times" in item for item in page.texts["li"])
    assert "bi-Lipschitz L" in page.texts["td"]
    assert page.texts["pre"] == [repr(study)]
    assert "interval over runs" not in page.texts["th"]  # two runs have none


def test_equal_inputs_give_equal_pages(runs, tmp_path):
    for make in (align, study_of):
        pages = [report(make(runs), tmp_path / "p.html").read_bytes() for _ in "ab"]
        assert pages[0] == pages[1]


def test_several_of_a_kind_are_compared(runs, tmp_path):
    errors = align(runs), align(runs, transformations=["rigid", "linear"])
    page = write({EVIL: errors[0], "few": errors[1]}, tmp_path, title=EVIL)
    assert page.texts["caption"].count("Compared") == 1
    for tag in ("title", "h1", "h2", "td"):
        assert EVIL in "".join(page.texts[tag])
    text = (tmp_path / "page.html").read_text()
    assert "<script" not in text and len(page.images) == 4
    page = write({"a": study_of(runs), "b": study_of(runs[:2])}, tmp_path)
    assert "Compared" in page.texts["caption"]
    page = write({"a": study_of(runs), "b": errors[0]}, tmp_path)
    assert "Compared" not in page.texts["caption"]
    assert [text for text in page.texts["h2"] if text.strip()] == ["a", "b"]


def test_study_that_is_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        report(IdentifiabilityStudy(PCA(2)), tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []
