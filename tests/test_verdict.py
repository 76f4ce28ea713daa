"""Verdicts of the litmus test, from its figures alone."""

from types import SimpleNamespace

import numpy as np
import pytest

from skident import CondTotalCorrelation
from skident._math.information import Estimate
from skident._verdict import judge, judge_capacity
from skident.metrics import BipartiteInformation


def case(u, pvalue=0.001, bound=None, marginal=0.001, known=None, gain=1.0):
    test = CondTotalCorrelation()
    test.known_total_correlation_ = None if bound is None else Estimate(1, 0.9, 1.1)
    if known is not None:
        test.known_total_correlation_ = Estimate(*known)
    test.unexplained_fraction_ = Estimate(*u)
    test.unexplained_bound_ = None if bound is None else Estimate(*bound)
    test.pvalue_, test.marginal_pvalue_ = pvalue, marginal
    test.estimators_ = [SimpleNamespace(gain_over_independent_=gain)]
    return judge(test)


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
    assert case(**arguments)[0] == verdict


@pytest.mark.parametrize(
    "u, words",
    [
        ((0.02, -0.01, 0.04), "leave 2.0% [-1.0%, 4.0%] of the total correlation"),
        ((-0.005, -0.012, 0.003), "can be told from 0: the estimate is -0.5% [-1.2%,"),
        ((-0.02, -0.03, -0.01), "fitted model, against which it is measured, leaves"),
    ],
)
def test_no_reason_says_that_less_than_nothing_is_left(u, words):
    verdict, reasons = case(u)
    assert verdict == "mean-field"
    assert words in reasons[0] and reasons[0].endswith("the margin is 5.0%.")
    assert "leave -" not in reasons[0]


@pytest.mark.parametrize(
    "bound, words",
    [
        ((0.02, -0.01, 0.04), "fraction by 2.0% [-1.0%, 4.0%]"),
        ((-0.005, -0.012, 0.003), "told from 0: the estimate is -0.5% [-1.2%, 0.3%]"),
        ((-0.02, -0.03, -0.01), "[-3.0%, -1.0%], though none is below 0: entropy= "),
    ],
)
def test_a_bound_below_zero_is_explained(bound, words):
    _, reasons = case((0.02, 0.01, 0.04), bound=bound)
    (reason,) = (reason for reason in reasons if "-ELBO" in reason)
    assert words in reason and reason.endswith("the margin is 5.0%.")


@pytest.mark.parametrize(
    "rates, interval, ceiling, capacity",
    [
        ([1.0, 1.2], (0.8, 0.7, 0.9), 7, "sufficient"),
        ([1.0, 1.2], (1.0, 0.9, 1.1), 7, "undecided"),
        ([1.0, 1.2], (1.4, 1.3, 1.5), 7, "insufficient"),
        ([1.0, 1.2], (1.3, 1.15, 1.4), 7, "undecided"),
        # so near to what the rows can show at all there may be more
        ([3.0, 3.0], (1.0, 0.9, 1.1), 2, "undecided"),
        ([0.5, 0.5], (1.0, 0.9, 1.1), 1.2, "insufficient"),
        ([0.0, 0.0], (0.0, 0.0, 0.0), 7, "sufficient"),
    ],
)
def test_capacity_by_interval(rates, interval, ceiling, capacity):
    bound = BipartiteInformation(*interval, "half", np.ones(2, bool), ceiling)
    found, reason = judge_capacity(rates, bound)
    assert found == capacity
    assert "I_bip (half)" in reason and "R = " in reason
