"""Do groups have the same share of successes? A/B tests of two groups or more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.intervals import Interval, side_alpha
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import ADJACENCIES, Adjacency, Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.bounds import Bounds
from privatest.data.by_group import group_names, resolve_samples
from privatest.data.categories import Category
from privatest.data.persons import check_persons
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.mechanisms.additive import count_noise, noisy_counts
from privatest.mechanisms.lattice import Mechanism, noise_law, noisy_integer
from privatest.statistics.outcomes import outcome_table, success_width
from privatest.tables.contrasts import difference_interval, equivalence, ratio_ends
from privatest.tables.outcomes import Outcomes, count_successes, person_of, read_outcomes
from privatest.tables.private_shares import PrivateShares
from privatest.tables.public_shares import PublicShares

__all__ = ["proportions_test", "tost_proportions"]

_SAME = "the groups have the same share of successes"
_NULLS = {
    "two-sided": _SAME,
    "greater": "the first group's share of successes is at most that of the second",
    "less": "the first group's share of successes is at least that of the second",
}


@declare_level("measured")
def proportions_test(
    *samples: Any,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
    adjacency: Adjacency | None = None,
    success: Category | None = None,
    bounds: Bounds = None,
    n_simulations: int = 9999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether groups have the same share of successes (an A/B test).

    Parameters
    ----------
    *samples : array, series or table of one column
        Two groups or more; one outcome per row: 0 and 1, true and false, or categories. Or one
        frame that ``group`` splits.
    group, groups, columns
        How a frame is split and which column is compared, as in :func:`privatest.mmd_test`.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision; confidence intervals have level 1 - alpha.
    alternative : {"two-sided", "greater", "less"}
        Of two groups; "greater": successes are more frequent in the first.
    adjacency : {"one", "both", "row"}, optional
        What is hidden: one record's outcome within its group, one record in each group, or (two
        groups) a record together with its group, so that group sizes are private. By default
        "one" for samples, and "row" for a frame, as in :func:`privatest.mmd_test`.
    success : str, int, float or bool, optional
        The value that is a success; all others are failures. By default 1 or true.
    bounds : None, pair or Schema
        Not needed. A schema describes the categories and says how many rows a person may have.
    n_simulations : int
        Number of simulated data sets for each common share that is tried. The smallest p-value
        is about 2/n_simulations.
    rng : None, int or Generator
        Public randomness, for the simulations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        The statistic is a private z (two groups) or chi-squared (more), with the noise in its
        variance. In ``estimates``: the ``proportions``; of two groups their ``difference``
        (first minus second) with its confidence interval ``lower`` to ``upper``, and their
        ``ratio`` with ``ratio_lower`` and ``ratio_upper`` (None: it may be infinite); of more the
        simultaneous intervals of the proportions.

    Notes
    -----
    The common share under the null hypothesis is unknown. The p-value is the largest over all
    shares that fit the released counts, plus the probability that the true one does not
    (Berger and Boos 1994): it is valid at every size and share, up to the grid of shares.
    Intervals are by MOVER from exact intervals of the shares; their coverage was measured. They
    are another method than the p-value: near the level an interval may contain 0 though the test
    rejects, or the other way round. One-sided tests have one-sided intervals.

    **Sensitivity** 1 for each count, times the rows of a person; for "row" 2 in the l1 norm for
    the table of groups and outcomes. Proof: docs/proofs/proportions.md.

    **Privacy** The number of successes of each group is released with Tulap noise: at (epsilon,
    delta) for "one", as a record is in one group, and at even parts of it for "both". For "row"
    the table is released with discrete Laplace (or Gaussian) noise at (epsilon, delta).
    Everything else is computed from that.

    References
    ----------
    Berger and Boos (1994); Donner and Zou (2012); Awan and Slavkovic (2018).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.uniform(size=3000) < 0.12, rng.uniform(size=2500) < 0.2
    >>> result = proportions_test(a, b, epsilon=1, rng=0)
    >>> result.reject
    True
    >>> low, high = result.confidence_interval(0.9)
    >>> bool(-0.2 < low < high < 0)
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("alternative", alternative, ALTERNATIVES)
    integer_at_least("n_simulations", n_simulations, 99)
    layout = resolve_samples(
        samples,
        bounds,
        adjacency,
        several=True,
        group=group,
        groups=groups,
        columns=columns,
    )
    chosen = layout.adjacency
    if alternative != "two-sided" and layout.count != 2:
        raise ParameterError("alternative must be 'two-sided' for more than two groups.")
    generator, source = public_generator(rng), noise_source(noise)
    data, described = layout.read(samples)
    read = _read(data, described, success, chosen)
    released = _release(read, budget, chosen, source)
    pvalue = released.pvalue(alternative, n_simulations, generator)
    intervals = partial(_intervals, released, alternative)
    shown: dict[str, Any] = {
        "alternative": alternative,
        "success": success,
        "n_simulations": n_simulations,
    }
    shown["group_names"] = group_names(len(data), bounds, adjacency, group, groups)
    return Outcome(
        reject=pvalue <= alpha,
        pvalue=pvalue,
        statistic=_statistic(released),
        estimated="difference_of_proportions" if len(read.groups) == 2 else "proportions",
        estimates=_estimates(released, alternative, 1 - alpha),
        intervals=intervals,
        method="test of equal proportions",
        null_hypothesis=_NULLS[alternative],
        **_facts(read, budget, alpha, chosen, source, shown),
    )


@declare_level("measured")
def tost_proportions(
    x: Any,
    y: Any,
    low: float,
    high: float,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    adjacency: Adjacency = "one",
    success: Category | None = None,
    bounds: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two shares of successes are equivalent: two one-sided tests.

    Parameters
    ----------
    x, y : array, series or table of one column
        The two groups, as in :func:`privatest.proportions_test`.
    low, high : float
        Public limits: the shares are equivalent if their difference, x minus y, is between.
    epsilon, delta, adjacency, success, bounds, noise
        As in :func:`privatest.proportions_test`.
    alpha : float
        Level of the decision, below 0.5; intervals have level 1 - 2 alpha, as is usual, and that
        of the difference lies within (low, high) if the test rejects; and only then, unless a
        group has fewer than ten successes or failures, where the test is more careful.

    Returns
    -------
    Outcome
        Rejecting means that the shares are equivalent. The statistic is the z of
        :func:`privatest.proportions_test`, which is 0 for equal shares; the decision is by the
        interval. The estimates are as there.

    Notes
    -----
    Both tests use one release, and the p-value is the larger one. Each is by MOVER, as the
    interval: its level was measured.

    **Sensitivity** As in :func:`privatest.proportions_test`.

    **Privacy** As in :func:`privatest.proportions_test`.

    References
    ----------
    Schuirmann (1987).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.uniform(size=9000) < 0.2, rng.uniform(size=9000) < 0.2
    >>> tost_proportions(a, b, -0.05, 0.05, epsilon=1).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=0.5)
    low, high = number("low", low), number("high", high)
    if not -1 <= low < high <= 1:
        raise ParameterError("low and high must be limits of a difference: -1 <= low < high <= 1.")
    source = noise_source(noise)
    read = _read((x, y), bounds, success, adjacency)
    released = _release(read, budget, adjacency, source)
    pvalue = equivalence(released, low, high)
    level = 1 - 2 * alpha
    shown = {"low": low, "high": high, "success": success, "interval_level": level}
    return Outcome(
        reject=pvalue <= alpha,
        pvalue=pvalue,
        statistic=_statistic(released),
        estimated="difference_of_proportions",
        estimates=_estimates(released, "two-sided", level),
        intervals=partial(_intervals, released, "two-sided"),
        method="equivalence of two proportions (TOST)",
        null_hypothesis=f"the shares of successes differ by {low:g} or less, or {high:g} or more",
        **_facts(read, budget, alpha, adjacency, source, shown),
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Read:
    groups: tuple[Outcomes, ...]

    @property
    def sizes(self) -> list[int]:
        return [len(group) for group in self.groups]

    @property
    def rows_per_person(self) -> int:
        return person_of(self.groups)


def _read(
    samples: Sequence[Any], bounds: Bounds, success: Category | None, adjacency: Adjacency
) -> _Read:
    """Read the groups; refusals go by public sizes only."""
    one_of("adjacency", adjacency, ADJACENCIES)
    if len(samples) < 2:
        raise ParameterError("samples must be two groups or more; binom_test takes one.")
    if adjacency == "row" and len(samples) != 2:
        raise ParameterError(
            "adjacency='row' (private groups) is for two groups: one value and 'rest', or pass "
            "adjacency='one', if everybody may know who is in which group.",
            remedy={"membership": "public"},
        )
    bounds = check_persons(bounds, samples, together=adjacency != "both")
    names = ["x", "y"] if len(samples) == 2 else [f"sample {i + 1}" for i in range(len(samples))]
    if adjacency == "row":  # in which group a row is, is not to be told
        names = ["x or y"] * 2
    read = _Read(
        tuple(
            read_outcomes(data, bounds, success, name)
            for data, name in zip(samples, names, strict=True)
        )
    )
    if adjacency == "row":
        if sum(read.sizes) < 4:
            raise DataError("the two groups must have at least 4 rows together.")
    elif min(read.sizes) < 1:
        raise DataError("each group must have at least 1 row.")
    return read


def _release(
    read: _Read, budget: Budget, adjacency: Adjacency, noise: NoiseSource
) -> PublicShares | PrivateShares:
    rows, won = read.rows_per_person, count_successes(read.groups)
    if adjacency == "row":
        law = count_noise(4, budget, rows_per_person=rows)
        table = outcome_table(won, read.sizes).ravel()
        cells = noisy_counts(table, law=law, budget=budget, rows_per_person=rows, noise=noise)
        return PrivateShares(tuple(cells.tolist()), sum(read.sizes), law)
    each = budget if adjacency == "one" else budget.divided(len(won))
    # Rows of one person may lie in several groups. Tulap noise can cost all of epsilon for a
    # move by 1, in each group; with Laplace noise the costs of the moves add up to epsilon.
    kind: Mechanism = "auto" if rows == 1 or adjacency == "both" else "laplace"
    lattice = noise_law(success_width() * rows, each, kind)
    counts = [noisy_integer(own, law=lattice, noise=noise) for own in won]
    return PublicShares(tuple(counts), tuple(read.sizes), lattice)


def _statistic(released: PublicShares | PrivateShares) -> float:
    if isinstance(released, PrivateShares):
        return float(released.statistic(np.array(released.cells)))
    return float(released.statistic(np.array(released.counts)))


def _intervals(
    released: PublicShares | PrivateShares, alternative: Alternative, level: float
) -> Interval:
    """Return the interval of the difference, or simultaneous ones of more than two shares."""
    groups = len(released.estimates)
    if groups == 2:
        return difference_interval(released, alternative, level)
    side = (1 - level ** (1 / groups)) / 2  # the groups' noise and rows are independent
    _, low, high = released.within(side)
    _, first, last = released.without_noise(side)
    return Interval.around(low, high, level, last - first)


def _estimates(
    released: PublicShares | PrivateShares, alternative: Alternative, level: float
) -> dict[str, Any]:
    shares, interval = released.estimates, _intervals(released, alternative, level)
    found: dict[str, Any] = {"proportions": shares, "lower": interval.low, "upper": interval.high}
    if len(shares) > 2:
        return found
    lower, upper = ratio_ends(released.within(side_alpha(level, alternative)))
    ratio = float(shares[0] / shares[1]) if shares[1] > 0 else None
    return found | {
        "difference": float(shares[0] - shares[1]),
        "ratio": ratio,
        "ratio_lower": 0.0 if alternative == "less" else lower,
        "ratio_upper": None if alternative == "greater" else upper,
    }


def _facts(
    read: _Read,
    budget: Budget,
    alpha: float,
    adjacency: Adjacency,
    source: NoiseSource,
    parameters: dict[str, Any],
) -> dict[str, Any]:
    """Return the public fields of a result."""
    names = ("n", "m") if len(read.groups) == 2 else [f"n{i + 1}" for i in range(len(read.groups))]
    sizes = dict(zip(names, read.sizes, strict=True))
    return {
        "alpha": alpha,
        "spent": budget,
        "adjacency": adjacency,
        "sizes": {"N": sum(read.sizes)} if adjacency == "row" else sizes,
        "parameters": {name: value for name, value in parameters.items() if value is not None},
        "rows_per_person": read.groups[0].rows_per_person,
        "simulated": source.simulated,
    }
