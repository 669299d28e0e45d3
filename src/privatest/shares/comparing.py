"""What anybody can do with shares: test whether the owners' data have the same distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from privatest.core.documents import fingerprint
from privatest.core.errors import ParameterError
from privatest.core.levels import declare_level
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, public_generator, reject
from privatest.shares.document import names_that_differ
from privatest.shares.sharing import Share
from privatest.statistics.moment_test import moment_pvalue, pool_releases
from privatest.two_sample.embedding_locations import in_own_units
from privatest.two_sample.embedding_moments import embedding_estimates

__all__ = ["compare", "compare_all"]

NOTE = "comparing costs nothing more: shares may be compared any number of times"


@declare_level("measured")
def compare(
    a: Share, b: Share, *, alpha: float = 0.05, n_bootstrap: int = 999, rng: Rng = None
) -> Outcome:
    """Test whether two owners' data have the same distribution, from their shares alone.

    Parameters
    ----------
    a, b : Share
        Two shares of one plan, by different owners.
    alpha : float
        Level of the test.
    n_bootstrap : int
        Draws of the null law.
    rng : None, int or Generator
        Public randomness, for these draws. With None they follow from the shares, so that
        everybody who compares the same two gets the same p-value, in either order.

    Returns
    -------
    Outcome
        ``spent`` is what the shares cost their owners' people; comparing adds nothing.

    Notes
    -----
    **Sensitivity** None: no private data is touched.

    **Privacy** Post-processing of the shares. A person in the data of both owners is protected
    by the sum of both budgets. Proof: docs/proofs/shares.md.

    **Validity** T = H w'(Sigma + gamma I)^-1 w, w the difference of means; its law under the
    null hypothesis is redrawn with the sampling error of w and the noise of all that was
    released. The p-value is valid up to the normal approximation of means.

    References
    ----------
    Raj et al. (2019), section 5.3.

    Examples
    --------
    >>> import numpy as np, privatest.shares as ps
    >>> plan = ps.plan_share((0, 1), epsilon=2, delta=1e-6, locations=4)
    >>> rng = np.random.default_rng(0)
    >>> a = ps.share(rng.uniform(size=2000), plan=plan)
    >>> b = ps.share(rng.beta(2, 1, size=2000), plan=plan)
    >>> ps.compare(a, b).reject
    True
    """
    alpha = number("alpha", alpha, above=0, below=1)
    n_bootstrap = integer_at_least("n_bootstrap", n_bootstrap, 1)
    for name, given in (("a", a), ("b", b)):
        if not isinstance(given, Share):
            reject(name, "a Share: share(...) or Share.load(path)", given)
    _check_plans(a, b)
    marks = a.checksum, b.checksum
    if marks[0] == marks[1]:
        raise ParameterError("the two shares are the same: compare those of two owners.")
    first, second = (a, b) if marks[0] < marks[1] else (b, a)
    generator = public_generator(_seed(marks) if rng is None else rng)
    statistic, pvalue = moment_pvalue(
        pool_releases(first.moments, second.moments), n_bootstrap=n_bootstrap, rng=generator
    )
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        pvalue=pvalue,
        statistic=statistic,
        spent=a.plan.budget,
        adjacency="one",
        method=f"comparison of two shares ({_features(a)})",
        null_hypothesis="the two samples come from the same distribution",
        sizes={"n": a.n, "m": b.n},
        parameters=_parameters(a, n_bootstrap),
        estimated="feature_differences",
        estimates=embedding_estimates(pool_releases(a.moments, b.moments), a.plan.embedding()),
        rows_per_person=a.plan.schema.rows_per_person,
        simulated=a.simulated or b.simulated,
    )


@declare_level("measured")
def compare_all(
    shares: Mapping[str, Share],
    *,
    alpha: float = 0.05,
    n_bootstrap: int | None = None,
    rng: Rng = None,
) -> dict[tuple[str, str], Outcome]:
    """Compare every pair of shares; p-values are corrected by Holm's method.

    Parameters
    ----------
    shares : mapping of str to Share
        At least two shares of one plan, keyed by owner.
    alpha : float
        Familywise error rate: the probability of rejecting any true hypothesis.
    n_bootstrap : int, optional
        Draws of each null law; by default enough for the smallest corrected p-value to be
        a tenth of ``alpha``, at least 999.
    rng : None, int or Generator
        As in :func:`compare`.

    Returns
    -------
    dict of (str, str) to Outcome
        For each pair: ``pvalue`` is corrected, ``parameters["raw_pvalue"]`` is not.

    Notes
    -----
    **Sensitivity** None: no private data is touched.

    **Privacy** Post-processing, as :func:`compare`: all pairs together cost nothing more.
    """
    given: object = shares
    if not isinstance(given, Mapping) or len(given) < 2:
        reject("shares", "at least two shares by the names of their owners", shares)
    alpha = number("alpha", alpha, above=0, below=1)
    pairs = list(combinations(shares, 2))
    draws = max(999, math.ceil(10 * len(pairs) / alpha)) if n_bootstrap is None else n_bootstrap
    generator = None if rng is None else public_generator(rng)
    raw = [
        compare(shares[a], shares[b], alpha=alpha, n_bootstrap=draws, rng=generator)
        for a, b in pairs
    ]
    corrected = holm([outcome.pvalue for outcome in raw])
    return {
        pair: replace(
            outcome,
            pvalue=pvalue,
            reject=pvalue <= alpha,
            parameters=dict(outcome.parameters)
            | {"raw_pvalue": outcome.pvalue, "correction": f"Holm, {len(pairs)} pairs"},
        )
        for pair, outcome, pvalue in zip(pairs, raw, corrected, strict=True)
    }


def holm(pvalues: list[float]) -> list[float]:
    """Correct p-values for multiple testing (Holm, 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(pvalues, kind="stable")
    factors = np.arange(len(pvalues), 0, -1)
    rising = np.maximum.accumulate(np.asarray(pvalues)[order] * factors)
    corrected = np.empty(len(pvalues))
    corrected[order] = np.minimum(rising, 1.0)
    return [float(value) for value in corrected]


def _check_plans(a: Share, b: Share) -> None:
    if a.plan.digest != b.plan.digest:
        names = ", ".join(names_that_differ(a.plan.parameters, b.plan.parameters))
        raise ParameterError(
            f"the two shares are of different plans: they differ in {names}. Owners who want to "
            "be compared use one plan."
        )


def _seed(marks: tuple[str, str]) -> int:
    return int(fingerprint(sorted(marks))[:16], 16)


def _features(share: Share) -> str:
    kernel = share.plan.kernel
    return share.plan.features + (f", {kernel} kernel" if kernel else "")


def _parameters(share: Share, n_bootstrap: int) -> dict[str, Any]:
    plan = share.plan
    parameters: dict[str, Any] = {
        "plan": plan.digest,
        "features": plan.features,
        "bandwidth": plan.bandwidth,
    }
    if plan.features == "mean embedding":
        locations = in_own_units(plan.points, plan.schema)
        parameters |= {"kernel": plan.kernel, "locations": locations}
    else:
        parameters["frequencies"] = plan.points.tolist()
    return parameters | {"n_bootstrap": n_bootstrap, "cost": NOTE}
