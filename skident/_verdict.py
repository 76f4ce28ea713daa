"""What a litmus test says, in one word and in reasons."""

LEVEL = 0.01
# A bound of the information this near to its ceiling says only that there is more.
_NEAR = 1.0


def judge(test):
    """Return verdict and reasons: see Notes of ``CondTotalCorrelation``."""
    margin, u = test.margin, test.unexplained_fraction_
    bound, known = test.unexplained_bound_, test.known_total_correlation_
    paired = test.marginal_pvalue_ < LEVEL
    pairs = f"pairwise independent (p = {test.marginal_pvalue_:.2g})"
    if not paired and (known is None or known.low <= 0.0):
        return "mean-field", [f"There is nothing to explain: the columns are {pairs}."]
    if paired:
        reasons = [f"{_left(u)}; the margin is {margin:.1%}."]
    else:
        reasons = [
            f"The columns are {pairs}, but not independent: their total correlation is "
            f"{known.value:.3g} nats."
        ]
    sign = "<=" if test.pvalue_ <= 1.0 / (1 + test.n_resamples) else "="
    reasons.append(
        f"Residual pair covariances against data drawn from the fitted model: p {sign} "
        f"{test.pvalue_:.2g}."
    )
    if known is None:
        reasons.append(
            "Without entropy= only dependence that shows in pairs of residuals was "
            "looked for."
        )
    else:
        reasons.append(f"{_bounded(bound)}; the margin is {margin:.1%}.")
    untrained = sum(
        getattr(model, "gain_over_independent_", 1.0) <= 0.0
        for model in test.estimators_
    )
    if untrained:
        reasons.append(
            f"{untrained} of {len(test.estimators_)} models are no better than "
            "independent columns (gain_over_independent_ <= 0), and convict nothing: "
            "train longer, or with more rows."
        )
    convicted = u.low > margin and test.pvalue_ < LEVEL and not untrained
    acquitted = (u if bound is None else bound).high < margin
    if convicted == acquitted:
        return "undecided", reasons
    return ("mean-field" if acquitted else "not mean-field"), reasons


def _left(u):
    """Say how much the latents leave; no estimate of it below 0 is said as such."""
    figures = f"{u.value:.1%} [{u.low:.1%}, {u.high:.1%}]"
    if u.value >= 0.0:
        return f"The latents leave {figures} of the total correlation unexplained"
    if u.high >= 0.0:
        return (
            "The latents leave nothing of the total correlation unexplained that can "
            f"be told from 0: the estimate is {figures}"
        )
    return (
        "The latents leave nothing of the total correlation unexplained: the estimate "
        f"is {figures}, below 0 because data drawn from the fitted model, against "
        "which it is measured, leaves more"
    )


def _bounded(bound):
    """Say what the upper bound is; below 0 it is an error of the rows or of H(p)."""
    figures = f"{bound.value:.1%} [{bound.low:.1%}, {bound.high:.1%}]"
    if bound.value >= 0.0:
        return f"-ELBO - H(p) bounds the unexplained fraction by {figures}"
    if bound.high >= 0.0:
        return (
            "-ELBO - H(p) bounds the unexplained fraction by nothing that can be told "
            f"from 0: the estimate is {figures}"
        )
    return (
        f"-ELBO - H(p) bounds the unexplained fraction by {figures}, though none is "
        "below 0: entropy= seems too large"
    )


def judge_capacity(rates, information):
    """Say whether latents of some rates can carry the information between two parts.

    Parameters
    ----------
    rates : sequence of float
        Rate of each model, nats.
    information : BipartiteInformation
        A lower bound of the information of one cut.

    Returns
    -------
    capacity : {"sufficient", "insufficient", "undecided"}
    reason : str
    """
    value, low, high, name, _, ceiling = information
    least, most = min(rates), max(rates)
    rate = " to ".join(dict.fromkeys(f"{r:.3g}" for r in (least, most)))
    facts = (
        f"R = {rate} nats, and I_bip ({name}) is at least {value:.3g} [{low:.3g}, "
        f"{high:.3g}]"
    )
    if most < low:
        return "insufficient", (
            f"The latents cannot carry what one part of the columns says of the other: "
            f"{facts}. At least {low - most:.3g} nats must remain."
        )
    if high > ceiling - _NEAR:
        return "undecided", (
            f"{facts}; but with so few rows it could not be found to exceed "
            f"{ceiling:.3g}, so that the latents may lack capacity."
        )
    if least >= high:
        return "sufficient", f"The latents can carry what was found: {facts}."
    return "undecided", f"Whether the latents can carry it is open: {facts}."
