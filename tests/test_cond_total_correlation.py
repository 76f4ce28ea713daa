import joblib
import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.special import expit, xlogy
from scipy.stats import kstest
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV

from skident import CondTotalCorrelation, MeanFieldVAE
from skident._litmus import BitModel, left_on_rows
from skident._random import generator
from skident.datasets import (
    make_curie_weiss,
    make_hopfield,
    make_ising,
    make_patterns,
)
from skident.exact import curie_weiss
from skident.exact import ising as exact_ising
from skident.metrics import one_standard_error

T, N = 0.9, 16


class ExactCurieWeiss(BaseEstimator):
    """The latent mean-field theory of the Curie-Weiss model, exactly.

    Hubbard-Stratonovich: with the field h | s ~ N(m, 1/(beta N)) the spins are
    independent, logit_i = 2 beta h; so q(z|x) is the true posterior.
    """

    # I(x; h) = 0.94 nats: see the test of the rate
    rate_ = 0.94

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
    # p-values are multiples of 1/101; a right program fails once in 1000 sets of seeds
    assert kstest(pvalues, "uniform").pvalue > 1e-3


class FittedCurieWeiss(ExactCurieWeiss):
    """The same with the temperature fitted to the rows, by <m^2>."""

    def fit(self, X, y=None):
        square = (X.mean(axis=1) ** 2).mean()

        def excess(temperature):
            return curie_weiss(self.n_sites, temperature).susceptibility - (
                self.n_sites * square
            )

        self.temperature = brentq(excess, 0.3, 5.0)
        return super().fit(X)


def rejections(model, n_rows, n_seeds):
    """Share of data sets of which p < 0.01, and how many that are."""
    return sum(
        CondTotalCorrelation(model, n_resamples=100, random_state=seed)
        .fit(curie_weiss_data(n_rows, 20_000 + seed))
        .pvalue_
        < 0.01
        for seed in range(n_seeds)
    )


@pytest.mark.slow
def test_refitting_one_parameter_rejects_no_more_than_it_may():
    # 100 at a rate of 1 %: more than 6 once in 14,000 sets of seeds
    assert rejections(FittedCurieWeiss(), 400, 100) <= 6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:On .* held-out rows:UserWarning")
def test_refitting_a_network_rejects_no_more_than_it_may():
    # 8 at a rate of 1 %: more than 2 once in 18,000 sets of seeds
    model = MeanFieldVAE(1, hidden_layer_sizes=(16,))
    assert rejections(model, 2000, 8) <= 2


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
    spread = sum(
        np.ptp(e[1:])
        for e in (ising.total_correlation_, ising.marginal_total_correlation_)
    )
    assert ising.score(fresh) == ising.score(fresh)
    assert ising.score(fresh) == pytest.approx(
        -ising.total_correlation_.value, abs=2.5 * spread
    )


@pytest.mark.parametrize("seed", range(2))
def test_scores_of_two_models_differ_by_what_they_leave(seed):
    """What there is to explain in the rows is common to both, and cancels."""
    X = curie_weiss_data(1000, seed)
    fresh = [curie_weiss_data(500, 10 * seed + k) for k in range(1, 9)]
    right, wrong = (
        CondTotalCorrelation(
            ExactCurieWeiss(temperature=t), n_resamples=100, random_state=0
        ).fit(X)
        for t in (T, 1.1 * T)
    )
    scores = np.array([[test.score(rows) for rows in fresh] for test in (right, wrong)])
    alone, difference = scores.std(axis=1).mean(), np.std(scores[0] - scores[1])
    assert difference < alone


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
    assert tests["plain"].values_ == (-1, 1) and tests["plain"].rate_ == 0.94
    # the bias of 120 couplings on 375 rows: some 0.1 nats
    assert -0.5 < tests["plain"].null_gain_ < 0
    CondTotalCorrelation(ExactCurieWeiss(), verbose=1, random_state=0).fit(X)
    assert "litmus, fold 2: 100%" in capsys.readouterr().err


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


def test_rate_of_the_exact_model():
    """R = I(x; h) = H(x) - sum_i H(x_i | h), and I(A; B) <= R."""
    h = ExactCurieWeiss().sample_posterior(curie_weiss_data(50_000, 0), random_state=0)
    p = expit(2 * h / T)
    rate = curie_weiss(N, T).entropy + N * (xlogy(p, p) + xlogy(1 - p, 1 - p)).mean()
    assert rate == pytest.approx(ExactCurieWeiss.rate_, abs=0.02)
    assert rate > curie_weiss(N, T).bipartite_information


def test_latents_of_the_exact_model_can_carry_the_information():
    X, exact = curie_weiss_data(4000, 0), curie_weiss(N, T).bipartite_information
    half = CondTotalCorrelation(ExactCurieWeiss(), random_state=0).fit(X)
    bound = half.bipartite_information_
    error = (bound.high - bound.low) / 4
    assert 0.85 * exact - 5 * error < bound.value < exact + 5 * error
    assert (
        bound.partition == "half" and bound.first.tolist() == [True] * 8 + [False] * 8
    )
    assert half.capacity_ == "sufficient"
    assert half.reasons_[-1].startswith(
        "The latents can carry what was found: R = 0.94"
    )
    # one site shares less with the rest than a half does, and all halves are alike
    pair = CondTotalCorrelation(
        ExactCurieWeiss(), partition=np.arange(16) == 3, random_state=0
    ).fit(X)
    assert pair.bipartite_information_.value < bound.low
    found = CondTotalCorrelation(
        ExactCurieWeiss(), partition="random-max", random_state=0
    ).fit(X)
    assert found.bipartite_information_.first.sum() == 8
    assert abs(found.bipartite_information_.value - bound.value) < 10 * error


def test_one_latent_cannot_carry_what_two_sublattices_share(sheet):
    """Rate of a model of one sign and magnitude, against the area of a checkerboard."""
    test = CondTotalCorrelation(
        MeanFieldVAE(1, hidden_layer_sizes=(32,), max_epochs=40),
        partition="checkerboard",
        shape=(6, 6),
        n_resamples=100,
        random_state=0,
    ).fit(sheet)
    bound, exact = test.bipartite_information_, exact_ising((6, 6), 2.5)
    assert bound.value == pytest.approx(exact.checkerboard_information, rel=0.15)
    assert bound.value < exact.checkerboard_information + (bound.high - bound.low)
    assert test.rate_ < bound.low and test.capacity_ == "insufficient"
    assert "cannot carry" in test.reasons_[-1] and "checkerboard" in test.reasons_[-1]


def test_a_cut_that_does_not_fit_is_refused_before_training():
    class Untrainable(ExactCurieWeiss):
        def fit(self, X, y=None):
            raise AssertionError

    X = curie_weiss_data(100, 0)
    for partition, match in [("checkerboard", "needs shape="), ([16], "column 16")]:
        with pytest.raises(ValueError, match=match):
            CondTotalCorrelation(Untrainable(), partition=partition).fit(X)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_single_column_has_no_cut():
    X = np.arange(40)[:, None] % 3 == 0
    model = MeanFieldVAE(1, hidden_layer_sizes=(4,), max_epochs=2)
    test = CondTotalCorrelation(model, n_resamples=100, random_state=0).fit(X)
    assert test.bipartite_information_[:3] == (0, 0, 0)
    assert test.capacity_ == "sufficient" and test.verdict_ == "mean-field"


class Wide(ExactCurieWeiss):
    """Knows how many threads torch may use when it is trained."""

    def fit(self, X, y=None):
        self.n_threads_ = torch.get_num_threads()
        return super().fit(X)


def hashes(test):
    """Return the hash of all but ``n_jobs``, part by part.

    Objects that share a part have another hash together than copies of them.
    """
    parts = vars(test) | {f"model {k}": m for k, m in enumerate(test.estimators_)}
    return {
        name: joblib.hash(part)
        for name, part in parts.items()
        if name not in ("n_jobs", "estimators_")
    }


@pytest.mark.filterwarnings("ignore:On .* held-out rows:UserWarning")
@pytest.mark.parametrize(
    "backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)]
)
def test_number_of_jobs_does_not_change_the_answer(backend):
    X = curie_weiss_data(300, 0)

    def fit(n_jobs):
        model = MeanFieldVAE(1, hidden_layer_sizes=(8,), max_epochs=5)
        with joblib.parallel_config(backend):
            return CondTotalCorrelation(
                model, cv=3, n_resamples=100, n_jobs=n_jobs, random_state=0
            ).fit(X)

    alone, together = fit(None), fit(2)
    assert hashes(alone) == hashes(together)


def test_each_fold_works_in_one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        test = CondTotalCorrelation(Wide(), random_state=0).fit(curie_weiss_data(40, 0))
        assert [model.n_threads_ for model in test.estimators_] == [1, 1]
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("odd", [-1, 1])
@pytest.mark.parametrize("low", [-1, 0])
def test_training_rows_of_one_value_are_not_taken_for_the_other_convention(low, odd):
    """A single entry differs: the models of all folds but one never see it."""
    if odd == -1:
        X = np.full((40, 5), 1)
        X[7, 2] = low
    else:
        X = np.full((40, 5), low)
        X[7, 2] = 1
    for model in (
        MeanFieldVAE(1, hidden_layer_sizes=(4,), max_epochs=3),
        ExactCurieWeiss(n_sites=5),
    ):
        if low == 0 and isinstance(model, ExactCurieWeiss):
            continue
        test = CondTotalCorrelation(
            model, cv=4, n_resamples=100, entropy=0.5, random_state=0
        ).fit(X)
        assert test.values_ == (low, 1)
        assert test.verdict_ in {"mean-field", "undecided"}
        assert np.isfinite(test.residual_covariance_).all()
        assert np.isfinite([*test.total_correlation_, test.score(X)]).all()
        # nothing is further off than the two values are apart
        assert np.abs(test.residual_covariance_).max() <= (1 - low) ** 2
        assert abs(test.upper_bound_.value) < 20


@pytest.mark.parametrize(
    "likelihood", ["gaussian", "poisson", "categorical", "bingham"]
)
def test_other_likelihoods_are_refused_with_a_way_out(likelihood):
    model = ExactCurieWeiss()
    model.likelihood = likelihood
    test = CondTotalCorrelation(FrozenEstimator(model.fit(None)))
    with pytest.raises(ValueError, match=f"'{likelihood}', but the litmus test is for"):
        test.fit(curie_weiss_data(100, 0))


def test_real_values_are_refused_with_a_way_out():
    X = np.random.default_rng(0).standard_normal((50, 4))
    with pytest.raises(ValueError, match=r"column 0, row 0 is .* two-valued.*X > 0"):
        CondTotalCorrelation(ExactCurieWeiss()).fit(X)


def test_score_of_few_rows_is_not_lower():
    """120 couplings fitted to 50 rows cost a lot, and cost simulated rows as much."""
    test = CondTotalCorrelation(ExactCurieWeiss(), random_state=0)
    test.fit(curie_weiss_data(4000, 0))
    model = BitModel(test.estimators_[0], (-1, 1))
    left = [
        left_on_rows(model, curie_weiss_data(100, seed) > 0, generator(seed))
        for seed in range(1, 21)
    ]
    assert abs(np.mean(left)) < 5 * np.std(left) / np.sqrt(20)
    assert np.std(left) < 0.2


def test_halves_of_the_chain_keep_groups_together():
    """Rows four times: a chain that saw a copy would seem to explain more."""
    X = np.repeat(curie_weiss_data(300, 0), 4, axis=0)
    groups = np.repeat(np.arange(300), 4)
    together = CondTotalCorrelation(ExactCurieWeiss(), random_state=0)
    together.fit(X, groups=groups)
    alone = CondTotalCorrelation(ExactCurieWeiss(), random_state=0).fit(X)
    exact = curie_weiss(N, T).total_correlation
    assert alone.marginal_total_correlation_.low > exact
    assert together.marginal_total_correlation_.low < exact


def search(model, latents, X, cv):
    """Return the number of latents within one standard error of the best."""
    test = CondTotalCorrelation(model, n_resamples=100, random_state=0)
    grid = {"estimator__n_components": latents}
    found = GridSearchCV(test, grid, cv=cv, refit=one_standard_error).fit(X)
    return found.best_params_["estimator__n_components"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:On .* held-out rows:UserWarning")
@pytest.mark.parametrize("seed", range(3))
def test_one_standard_error_finds_the_latent_of_curie_weiss(seed):
    model = MeanFieldVAE(hidden_layer_sizes=(32,), max_epochs=60, objective="elbo")
    assert search(model, [1, 2, 3], curie_weiss_data(3000, seed), 3) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1))
def test_one_standard_error_finds_the_patterns_of_hopfield(seed):
    patterns = make_patterns(4, 64, random_state=seed)
    X, _ = make_hopfield(8_000, patterns, temperature=0.9, random_state=seed)
    model = MeanFieldVAE(
        objective="elbo",
        hidden_layer_sizes=(64,),
        learning_rate=1e-2,
        kl_warmup=0.3,
        max_epochs=100,
    )
    assert search(model, [3, 4, 5], X, 3) == 4
