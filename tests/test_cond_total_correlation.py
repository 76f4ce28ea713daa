from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV

from skident import CondTotalCorrelation, MeanFieldVAE
from skident._cond_total_correlation import Estimate, _judge
from skident.datasets import make_curie_weiss, make_ising
from skident.exact import curie_weiss

T, N = 0.9, 16


class ExactCurieWeiss(BaseEstimator):
    """The latent mean-field theory of the Curie-Weiss model, exactly.

    Hubbard-Stratonovich: with the field h | s ~ N(m, 1/(beta N)) the spins are
    independent, logit_i = 2 beta h; so q(z|x) is the true posterior.
    """

    rate_ = 0.0

    def __init__(self, temperature=T, n_sites=N):
        self.temperature = temperature
        self.n_sites = n_sites

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def sample_posterior(self, X, *, random_state=None):
        noise = np.random.default_rng(random_state).standard_normal((len(X), 1))
        deviation = np.sqrt(self.temperature / self.n_sites)
        return X.mean(axis=1, keepdims=True) + deviation * noise

    def inverse_transform(self, Z):
        return np.tanh(Z / self.temperature) * np.ones(self.n_sites)

    def sample(self, n, *, random_state=None):
        return make_curie_weiss(
            n, self.n_sites, temperature=self.temperature, random_state=random_state
        )[0]

    def elbo(self, X):
        return curie_weiss_log_prob(X)


def curie_weiss_log_prob(X):
    """ln p(x) = M^2 / (2 N T) - ln Z."""
    log_z = -curie_weiss(N, T).free_energy / T
    return X.sum(axis=1, dtype=float) ** 2 / (2 * N * T) - log_z


def curie_weiss_data(n, seed):
    return make_curie_weiss(n, N, temperature=T, random_state=seed)[0]


@pytest.mark.parametrize("seed", range(3))
def test_exact_latents_leave_nothing(seed):
    test = CondTotalCorrelation(ExactCurieWeiss(), random_state=seed)
    test.fit(curie_weiss_data(4000, seed))
    exact = curie_weiss(N, T).total_correlation
    assert test.verdict_ == "mean-field"
    # 5 standard errors, from the 95 % interval
    low, high = (test.total_correlation_.value - 2.5 * w for w in _widths(test))
    assert low < 0 < high + 0.01
    assert abs(test.unexplained_fraction_.value) < 0.02
    # the chain's total correlation lies just below the exact one
    total = test.marginal_total_correlation_
    assert exact - 0.05 - 2 * (total.high - total.low) < total.value
    assert total.value < exact + 2 * (total.high - total.low)
    assert test.pvalue_ > 1e-3 or test.pvalue_ == pytest.approx(1 / 201)


def _widths(test):
    spread = test.total_correlation_.high - test.total_correlation_.low
    return spread, -spread


@pytest.mark.slow
def test_pvalue_of_a_frozen_true_model_is_uniform():
    """200 data sets from the model itself, fresh rows each."""
    pvalues = [
        CondTotalCorrelation(
            FrozenEstimator(ExactCurieWeiss().fit(None)),
            n_resamples=100,
            random_state=seed,
        )
        .fit(curie_weiss_data(400, 10_000 + seed))
        .pvalue_
        for seed in range(200)
    ]
    from scipy.stats import kstest

    # p-values are multiples of 1/101; the test's own level is 1e-4
    assert kstest(pvalues, "uniform").pvalue > 1e-4


def test_known_entropy_gives_the_upper_bound():
    X = curie_weiss_data(3000, 0)
    by_row = CondTotalCorrelation(
        ExactCurieWeiss(), entropy=curie_weiss_log_prob, random_state=0
    ).fit(X)
    # the ELBO of the exact model is ln p(x): nothing left, without error
    assert by_row.upper_bound_ == pytest.approx((0, 0, 0), abs=1e-12)
    assert by_row.unexplained_bound_ == pytest.approx((0, 0, 0), abs=1e-12)
    assert by_row.verdict_ == "mean-field"
    number = CondTotalCorrelation(
        ExactCurieWeiss(), entropy=curie_weiss(N, T).entropy, random_state=0
    ).fit(X)
    bound = number.upper_bound_
    assert bound.low < bound.value < bound.high and abs(bound.value) < 0.3
    assert bound.high - bound.low > 0.01


def test_entropy_that_is_no_log_probability_is_refused():
    test = CondTotalCorrelation(ExactCurieWeiss(), entropy=lambda X: X, random_state=0)
    with pytest.raises(ValueError, match=r"one finite ln p\(x\) a row, shape \(50,\)"):
        test.fit(curie_weiss_data(100, 0))


@pytest.fixture(scope="module")
def sheet():
    return make_ising(3000, (6, 6), temperature=2.5, random_state=0)[0]


@pytest.fixture(scope="module")
def ising(sheet):
    model = MeanFieldVAE(1, hidden_layer_sizes=(32,), max_epochs=40)
    return CondTotalCorrelation(model, n_resamples=100, random_state=0).fit(sheet)


def test_short_range_order_is_no_mean_field(ising):
    assert ising.verdict_ == "not mean-field"
    assert ising.pvalue_ == pytest.approx(1 / 101)
    assert ising.unexplained_fraction_.low > 0.05
    assert ising.unexplained_fraction_.high < 1
    assert ising.upper_bound_ is None and ising.unexplained_bound_ is None
    assert any("pairs of residuals" in reason for reason in ising.reasons_)


def test_residual_covariance_shows_the_bonds(ising):
    covariance = ising.residual_covariance_
    np.testing.assert_allclose(covariance, covariance.T)
    row, column = np.divmod(np.arange(36), 6)
    steps = [
        np.minimum(d % 6, -d % 6)
        for d in (np.subtract.outer(row, row), np.subtract.outer(column, column))
    ]
    distance = steps[0] + steps[1]
    assert covariance[distance == 1].mean() > 0.1 > covariance[distance == 4].mean()
    assert 0 < np.diag(covariance).mean() <= 1


def test_units_of_the_residual_covariance(sheet, ising):
    model = MeanFieldVAE(1, hidden_layer_sizes=(32,), max_epochs=40)
    bits = CondTotalCorrelation(model, n_resamples=100, random_state=0).fit(sheet > 0)
    np.testing.assert_allclose(
        4 * bits.residual_covariance_, ising.residual_covariance_, atol=1e-5
    )
    assert bits.verdict_ == ising.verdict_


def test_same_seed_same_answer_and_every_row_is_held_out_once(sheet, ising):
    model = MeanFieldVAE(1, hidden_layer_sizes=(32,), max_epochs=40)
    again = CondTotalCorrelation(model, n_resamples=100, random_state=0).fit(sheet)
    assert joblib.hash(again) == joblib.hash(ising)
    assert len(ising.estimators_) == 2
    first, second = ising.estimators_
    assert not np.array_equal(first.transform(sheet), second.transform(sheet))


def test_score_is_minus_total_correlation_on_new_rows(ising):
    fresh, _ = make_ising(3000, (6, 6), temperature=2.5, random_state=9)
    spread = ising.total_correlation_.high - ising.total_correlation_.low
    assert ising.score(fresh) == pytest.approx(
        -ising.total_correlation_.value, abs=2.5 * spread
    )


def test_nothing_to_explain_is_mean_field():
    X = np.random.default_rng(0).integers(0, 2, (1000, 8))
    with pytest.warns(UserWarning, match="no better than independent"):
        test = CondTotalCorrelation(
            MeanFieldVAE(1, hidden_layer_sizes=(8,), max_epochs=5),
            n_resamples=100,
            random_state=0,
        ).fit(X)
    assert test.verdict_ == "mean-field"
    assert test.unexplained_fraction_ == (0, 0, 0)
    assert "nothing to explain" in test.reasons_[0]


def test_groups_stay_together():
    """Every row four times: folds that split them would leak."""
    X = np.repeat(curie_weiss_data(300, 0), 4, axis=0)
    seen = []

    class Recorder(ExactCurieWeiss):
        def fit(self, X, y=None):
            seen.append(len(X))
            return super().fit(X)

    groups = np.repeat(np.arange(300), 4)
    grouped = CondTotalCorrelation(Recorder(), random_state=0).fit(X, groups=groups)
    alone = CondTotalCorrelation(Recorder(), random_state=0).fit(X)
    assert seen[:2] == [600, 600]
    width = [
        t.marginal_total_correlation_.high - t.marginal_total_correlation_.low
        for t in (grouped, alone)
    ]
    assert 1.5 < width[0] / width[1] < 2.7  # four copies: twice the standard error


@pytest.mark.filterwarnings("ignore:On .* held-out rows:UserWarning")
def test_known_entropy_sees_what_pairs_do_not_show():
    """Four triples, the third site the product of two coins: 4 ln 2 of dependence."""
    coins = np.random.default_rng(0).choice([-1, 1], (3000, 8))
    X = np.concatenate([coins, coins[:, ::2] * coins[:, 1::2]], axis=1)
    model = MeanFieldVAE(1, hidden_layer_sizes=(8,), max_epochs=3)
    test = CondTotalCorrelation(
        model, entropy=8 * np.log(2), n_resamples=100, random_state=1
    ).fit(X)
    assert test.known_total_correlation_.value == pytest.approx(4 * np.log(2), abs=0.01)
    assert test.unexplained_bound_.low > 0.9
    assert test.verdict_ == "undecided"
    assert "pairwise independent" in test.reasons_[0]


@pytest.mark.parametrize("entropy", [np.nan, np.inf, -np.inf])
def test_entropy_that_is_not_finite_is_refused(entropy):
    with pytest.raises(ValueError, match="entropy must be finite"):
        CondTotalCorrelation(ExactCurieWeiss(), entropy=entropy).fit(
            curie_weiss_data(100, 0)
        )


def test_options_of_the_litmus_test(capsys):
    X = curie_weiss_data(4000, 0)
    tests = {
        name: CondTotalCorrelation(ExactCurieWeiss(), random_state=0, **options).fit(X)
        for name, options in {
            "plain": {},
            "narrow": {"confidence_level": 0.5},
            "folds": {"cv": 3},
            "strict": {"margin": 1e-9},
        }.items()
    }
    assert capsys.readouterr() == ("", "")

    def width(name):
        return tests[name].total_correlation_.high - tests[name].total_correlation_.low

    assert width("plain") > 2 * width("narrow")
    assert len(tests["folds"].estimators_) == 3
    assert tests["plain"].verdict_ == "mean-field"
    assert tests["strict"].verdict_ == "undecided"
    assert tests["plain"].values_ == (-1, 1) and tests["plain"].rate_ == 0.0
    # the bias of 120 couplings on 375 rows: some 0.1 nats
    assert -0.5 < tests["plain"].null_gain_ < 0
    CondTotalCorrelation(ExactCurieWeiss(), verbose=1, random_state=0).fit(X)
    assert "litmus: 100%" in capsys.readouterr().err


def case(u, pvalue=0.001, bound=None, marginal=0.001, known=None, gain=1.0):
    test = CondTotalCorrelation()
    test.known_total_correlation_ = None if bound is None else Estimate(1, 0.9, 1.1)
    if known is not None:
        test.known_total_correlation_ = Estimate(*known)
    test.unexplained_fraction_ = Estimate(*u)
    test.unexplained_bound_ = None if bound is None else Estimate(*bound)
    test.pvalue_, test.marginal_pvalue_ = pvalue, marginal
    test.estimators_ = [SimpleNamespace(gain_over_independent_=gain)]
    return _judge(test)[0]


@pytest.mark.parametrize(
    "arguments, verdict",
    [
        ({"u": (0.02, 0.01, 0.04)}, "mean-field"),
        ({"u": (0.04, 0.03, 0.06)}, "undecided"),
        ({"u": (0.1, 0.08, 0.12)}, "not mean-field"),
        ({"u": (0.1, 0.08, 0.12), "pvalue": 0.02}, "undecided"),
        ({"u": (0.1, 0.08, 0.12), "marginal": 0.3}, "mean-field"),
        # a model that is no better than independence convicts nothing
        ({"u": (1, 0.9, 1.1), "gain": -0.01}, "undecided"),
        # the bound acquits, the direct estimate convicts
        ({"u": (0.02, 0.01, 0.04), "bound": (0.07, 0.06, 0.08)}, "undecided"),
        ({"u": (0.02, 0.01, 0.04), "bound": (0.03, 0.02, 0.04)}, "mean-field"),
        ({"u": (0.1, 0.08, 0.12), "bound": (0.2, 0.1, 0.3)}, "not mean-field"),
        ({"u": (0.1, 0.08, 0.12), "bound": (0.03, 0.02, 0.04)}, "undecided"),
        # pairs show nothing; the entropy says whether there is anything
        ({"u": (0, 0, 0), "bound": (1, 0.9, 1.1), "marginal": 0.3}, "undecided"),
        ({"u": (0, 0, 0), "bound": (0.02, 0.01, 0.03), "marginal": 0.3}, "mean-field"),
        (
            {
                "u": (0, 0, 0),
                "bound": (9, -9, 99),
                "marginal": 0.3,
                "known": (0.001, -0.01, 0.01),
            },
            "mean-field",
        ),
    ],
)
def test_verdict_by_equivalence_margin(arguments, verdict):
    assert case(**arguments) == verdict


@pytest.mark.filterwarnings("ignore:On .* held-out rows:UserWarning")
def test_grid_search_over_the_number_of_latents():
    search = GridSearchCV(
        CondTotalCorrelation(
            MeanFieldVAE(hidden_layer_sizes=(16,), max_epochs=15),
            n_resamples=100,
            random_state=0,
        ),
        {"estimator__n_components": [1, 2]},
        cv=2,
    ).fit(curie_weiss_data(800, 0))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["estimator__n_components"] in {1, 2}


@pytest.mark.parametrize("n", [3, 7])
def test_too_few_rows_are_refused(n):
    with pytest.raises(ValueError, match=r"minimum of 8 is required"):
        CondTotalCorrelation(ExactCurieWeiss()).fit(curie_weiss_data(n, 0))


@pytest.mark.filterwarnings("ignore:On .* held-out rows:UserWarning")
def test_caller_s_estimator_is_left_alone():
    model = MeanFieldVAE(1, hidden_layer_sizes=(8,), max_epochs=2)
    CondTotalCorrelation(model, n_resamples=100, random_state=0).fit(
        curie_weiss_data(200, 0)
    )
    assert not hasattr(model, "weights_") and model.random_state is None
