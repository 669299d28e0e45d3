"""Tests of paired data: symmetry, signs, signed ranks (Wilcoxon).

:mod:`privatest.numerics.order` has the statistics as integers, with their sensitivities.

A difference of 0 says nothing about the direction of a change. Dropped, it changes the sample size
that the null distribution needs. So the number of differences other than 0 is released with noise,
and that many count: if noise makes it too many, zeros count with a secret coin each; if too few,
some others are left out at random. Whatever the noise, the law of signs and of signed ranks is that
of so many fair signs. Proof: docs/proofs/rank-tests.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.core.noise import NoiseSource, noise_source, secret_coins
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome, declare_level
from privatest.core.validation import number, one_of
from privatest.data.encoding import Sample, encode_pairs, encode_sample, rows_of_a_person
from privatest.data.reading import bounds_of_measurements
from privatest.data.schema import Bounds
from privatest.data.sources import Joined
from privatest.mechanisms.lattice import (
    PublicNull,
    laplace_law,
    lattice_outcome,
    noise_law,
    noisy_integer,
    part_law,
    release_statistic,
)
from privatest.methods.descriptor import EXACT, Method, Offered
from privatest.numerics.ecdf import are_far, far_signed_rank, far_symmetry
from privatest.numerics.laws import (
    ALTERNATIVES,
    Alternative,
    LatticeTulap,
    sign_law,
    sure_ties,
    symmetry_law,
    tie_miss,
    tie_reach,
    tied_pvalue,
    wilcoxon_factor,
    wilcoxon_law,
)
from privatest.numerics.order import (
    Symmetry,
    counted_first,
    sign_balance,
    sign_counts,
    sign_width,
    signed_midrank,
    signed_rank,
    signed_rank_width,
    symmetry,
    symmetry_width,
    tie_cubes,
    tie_cubes_width,
)

# --- Statistics and what is spent on them ------------------------------------------------------


def _symmetry_statistic(differences: Sample, statistic: Symmetry, noise: NoiseSource) -> int:
    """Return n times the distance, ties in a secret order and zeros with secret signs."""
    n = len(differences)
    if are_far(n, noise):
        return far_symmetry(differences, statistic, noise)
    values = np.sort(differences.values)  # for speed: any order would do
    return symmetry(values, statistic, noise.permutation(n), secret_coins(noise, n))


def _signed_rank_statistic(
    values: NDArray[np.float64], counted: int, shares: PairedShares, noise: NoiseSource
) -> tuple[int, int]:
    """Return 2W of the differences that count, and the sum of t³ - t over their ties."""
    n = len(values)
    labels, coins = noise.permutation(n), secret_coins(noise, n)
    order = counted_first(values, labels, counted)
    chosen, signs = values[order], coins[order]
    if not shares.ties:
        return signed_rank(chosen, np.arange(counted), signs), 0
    return signed_midrank(chosen, signs), tie_cubes(np.abs(chosen[chosen != 0]))


_NONZERO, _TIES = 0.1, 0.05  # of epsilon
_FEW = 12.0  # n epsilon² below which noise hides more than coins do
_MANY = 2500.0  # n epsilon² from which on ties matter more than noise
_BELOW = 1 - 1e-12  # parts are rounded down, so that they never sum to more than epsilon


@dataclass(frozen=True, slots=True)
class PairedShares:
    """How a budget is divided by public numbers.

    Attributes
    ----------
    nonzero, ties, rest : float
        Parts of epsilon for the number of differences other than 0, for ties (0 if they are not
        counted), and for the statistic.
    """

    budget: Budget
    nonzero: float
    ties: float
    rest: float
    rows_per_person: int

    @classmethod
    def of(cls, n: int, rows_per_person: int, budget: Budget, *, ranks: bool) -> PairedShares:
        """Divide a budget; ties are counted only where ranks are tested."""
        epsilon = budget.pure_epsilon * _BELOW
        size = n * (epsilon / rows_per_person) ** 2
        nonzero = _NONZERO if size >= _FEW else 0.0
        ties = _TIES if ranks and size >= _MANY else 0.0
        rest = (1 - nonzero - ties) * epsilon
        return cls(budget, nonzero * epsilon, ties * epsilon, rest, rows_per_person)

    @classmethod
    def whole(cls, budget: Budget, rows_per_person: int) -> PairedShares:
        """Spend all on the statistic."""
        return cls(budget, 0.0, 0.0, budget.pure_epsilon, rows_per_person)

    def noise(self, width: int, step: int) -> LatticeTulap:
        """Return the noise of a statistic that one row moves by at most ``width``."""
        width *= self.rows_per_person
        if not self.nonzero:
            return noise_law(width, self.budget, "auto", step=step)
        return part_law(width, self.rest)


def _release_nonzero(
    nonzero: int, n: int, shares: PairedShares, noise: NoiseSource, *, ranks: bool
) -> tuple[int | None, int]:
    """Release the number of differences other than 0; return it with how many count.

    Some more than the released number count: a zero that counts costs less power than another
    difference that does not, and for ``ranks`` it lifts the others above the noise. All n count if
    nothing is spent on this number.

    **Sensitivity** 1, times the rows of a person. **Privacy** Discrete Laplace noise,
    ``shares.nonzero``-private.
    """
    if not shares.nonzero:
        return None, n
    law = laplace_law(shares.rows_per_person, shares.nonzero)
    noisy = round(noisy_integer(nonzero, law=law, noise=noise))
    estimate = min(max(noisy, 0), n)
    more = shares.rows_per_person / shares.nonzero
    if ranks:  # the noise on ranks is as large as chance for 24/epsilon² differences
        more = 2 * more + min(24 * (shares.rows_per_person / shares.rest) ** 2, 2.0 * estimate)
    return estimate, min(max(noisy + round(more), 0), n)


def _release_ties(
    cubes: int, counted: int, shares: PairedShares, reach: float, noise: NoiseSource
) -> float:
    """Release the ties, and return a number that they hardly fall short of.

    They are counted in multiples of ``counted``. Dropping the remainder adds less than 1 to the
    sensitivity. ``reach`` is in scales of the noise.
    """
    unit = max(counted, 1)
    law = laplace_law((tie_cubes_width(unit) // unit + 1) * shares.rows_per_person, shares.ties)
    noisy = round(noisy_integer(cubes // unit, law=law, noise=noise))
    return unit * sure_ties(noisy, 1 / law.epsilon, reach)


# --- Null distributions ------------------------------------------------------------------------


def symmetry_null(n: int, statistic: Symmetry) -> PublicNull:
    """Return the null distribution of n times the distance."""
    return PublicNull(symmetry_law(n, statistic), symmetry_width(), unit=n)


def sign_null(counted: int, nonzero: int) -> PublicNull:
    """Return the null distribution of 2S - counted; S is shown for ``nonzero`` differences."""
    return PublicNull(sign_law(counted), sign_width(), 2, 2, nonzero, smaller=True)


def signed_rank_null(counted: int) -> PublicNull:
    """Return the null distribution of 2W = 4 (sum of positive ranks) - counted (counted + 1)."""
    width, offset = signed_rank_width(max(counted, 1)), counted * (counted + 1)
    return PublicNull(wilcoxon_law(counted), width, 4, 4, offset, smaller=True)


# --- Public functions -------------------------------------------------------------------------


_SYMMETRIC = "differences are distributed symmetrically about 0"
_SIGN_NULLS = {
    "two-sided": "positive and negative differences are equally likely",
    "greater": "positive differences are at most as likely as negative ones",
    "less": "negative differences are at most as likely as positive ones",
}
_SHIFT_NULLS = {
    "two-sided": _SYMMETRIC,
    "greater": "differences are distributed symmetrically about 0 or a number below",
    "less": "differences are distributed symmetrically about 0 or a number above",
}


@declare_level("valid")
def symmetry_test(
    x: Any,
    y: Any = None,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    statistic: Symmetry = "ks",
    bounds: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether differences are distributed symmetrically about 0.

    The distance between the empirical distribution of z and that of -z: it sees a shift, and
    also a skew that leaves median and mean where they were.

    Parameters
    ----------
    x : array, series or table of one column
        The differences; or, with ``y``, the first of two measurements.
    y : array, series or table of one column, optional
        The other measurement; row i belongs to row i of ``x``. The differences are then
        z = x - y, as in SciPy and R: a rise is ``(after, before)``.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    statistic : {"ks", "kuiper"}
        Largest absolute difference, or largest plus smallest: better for changes of shape.
    bounds : None, pair, a pair for x and one for y, mapping of names to pairs, or Schema
        Not needed. A schema (of one column, or of x and y) checks and clips values and says
        how many rows a person may have.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        With the private distance and its p-value.

    Notes
    -----
    Ties of |z| are broken at random, in secret, and zeros get a secret random sign, so the law
    under the null hypothesis is exact for every n. With many zeros the distance is then a little
    larger than that of the two distribution functions.

    **Sensitivity** 2/n, times the rows of a person. Proof: docs/proofs/rank-tests.md.

    **Privacy** n times the distance, an integer, is released with Tulap noise of width 2 at
    (epsilon, delta); the p-value follows from it.

    References
    ----------
    Awan and Wang (2022), Differentially private Kolmogorov–Smirnov-type tests.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> before = rng.normal(size=2000)
    >>> after = before + rng.normal(0.3, 1, size=2000)
    >>> symmetry_test(after, before, epsilon=1).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("statistic", statistic, ("ks", "kuiper"))
    source = noise_source(noise)
    sample = _difference_rows(x, y, bounds)
    name = "Kolmogorov–Smirnov" if statistic == "ks" else "Kuiper"
    method = f"symmetry test for paired data ({name})"
    return lattice_outcome(
        _symmetry_statistic(sample, statistic, source),
        symmetry_null(len(sample), statistic),
        rows_per_person=rows_of_a_person(sample),
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=_facts(sample, method, _SYMMETRIC, {"statistic": statistic})
        | {"method_id": f"symmetry_test/{statistic}"},
    )


@declare_level("valid")
def sign_test(
    x: Any,
    y: Any = None,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Offered[Alternative] = "two-sided",
    bounds: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether differences are as often positive as negative.

    Parameters
    ----------
    x, y
        As in :func:`symmetry_test`: z = x - y.
    epsilon, delta, alpha
        The privacy budget, and the level of the decision.
    alternative : {"two-sided", "greater", "less"}
        "greater": positive differences are more likely, x above y.
    bounds, noise
        As in :func:`symmetry_test`.

    Returns
    -------
    Outcome
        The statistic is the private number of positive differences ("greater", "less"), or the
        smaller of the numbers of positive and negative ones ("two-sided"). ``estimates`` have
        "nonzero", the private number of differences other than 0, and "counted".

    Notes
    -----
    Zeros are left out, as usual: a tenth of epsilon says how many differences are not 0, and that
    many count. If noise makes that too many, some zeros count with a secret coin each; if too few,
    some others are left out at random. So the number of positive ones is binomial under the null
    hypothesis whatever the noise, and with little noise the p-value is that of
    ``scipy.stats.binomtest`` on the differences other than 0. Where noise matters more than zeros,
    n epsilon² < 12, nothing is spent on them and every zero has a coin.

    **Sensitivity** 1 for both numbers, times the rows of a person. Proof:
    docs/proofs/rank-tests.md.

    **Privacy** The number of differences other than 0 is released with discrete Laplace noise. The
    number of positive ones among those that count, or its distance from half of them, is released
    with Tulap noise, or Laplace noise where epsilon >= 4.63. Together they cost (epsilon, delta);
    the p-value follows from them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sign_test(rng.normal(0.3, 1, size=2000), epsilon=1, alternative="greater").reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("alternative", alternative, ALTERNATIVES)
    source = noise_source(noise)
    sample = _difference_rows(x, y, bounds)
    n = len(sample)
    shares = PairedShares.of(n, rows_of_a_person(sample), budget, ranks=False)
    counts = sign_counts(sample)
    nonzero, counted = _release_nonzero(sum(counts), n, shares, source, ranks=False)
    null = sign_null(counted, counted if nonzero is None else nonzero)
    method, parameters = "sign test for paired data", {"alternative": alternative}
    return lattice_outcome(
        sign_balance(counts, n, counted, source),
        null,
        drawn_from=shares.noise(null.width, null.step),
        alternative=alternative,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=_facts(sample, method, _SIGN_NULLS[alternative], parameters)
        | {"estimates": {} if nonzero is None else {"nonzero": nonzero, "counted": counted}},
        named="the smaller of the numbers of positive and negative differences",
    )


@declare_level("valid", measured="n ε² ≥ 2500, if there are ties")
def wilcoxon(
    x: Any,
    y: Any = None,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Offered[Alternative] = "two-sided",
    bounds: Bounds = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Wilcoxon's signed-rank test, private.

    Parameters
    ----------
    x, y, epsilon, delta, alpha, bounds, noise
        As in :func:`symmetry_test`: z = x - y.
    alternative : {"two-sided", "greater", "less"}
        "greater": differences tend to lie above 0, x above y.

    Returns
    -------
    Outcome
        The statistic is SciPy's, with noise: the sum of the ranks of positive differences
        ("greater", "less"), or the smaller of the sums of positive and negative ones
        ("two-sided"). ``estimates`` have "nonzero", the private number of differences other
        than 0, and "counted".

    Notes
    -----
    Zeros are left out before ranking, as SciPy does by default (``zero_method="wilcox"``). A tenth
    of epsilon says how many differences are not 0, and that many count. If noise makes that too
    many, some zeros count too: they have the lowest ranks and a secret coin each. If too few, some
    others are left out at random. Where noise matters more than zeros, n epsilon² < 12, and above
    2²⁶ rows nothing is spent on them, and every zero has a rank and a coin.

    Without ties among the sizes |z| the law of W, the sum of sign(z) rank(|z|), is exact under the
    null hypothesis for every n. Ties are broken at random, in secret, which keeps it exact, unless
    n epsilon² >= 2500. There midranks are taken, as SciPy does; a twentieth of epsilon says how
    many ties there are, and the variance allows for them: with ties that p-value is approximate.
    As epsilon grows it becomes SciPy's.

    "greater" and "less" keep their level if each difference, given its size, is at most as likely
    to be positive (negative) as not; without zeros also for differences that are distributed
    symmetrically about any number below (above) 0.

    **Sensitivity** of 2W among m differences: 4m; of their ties: 3m (m - 1); of the number of
    differences other than 0: 1; times the rows of a person. Proof: docs/proofs/rank-tests.md.

    **Privacy** The number of differences other than 0 is released with discrete Laplace noise, and
    so are ties. 2W or 2|W| is released with Tulap noise of width 4m, or Laplace noise where epsilon
    >= 4.63. Together they cost (epsilon, delta); the p-value follows from them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> wilcoxon(rng.normal(0.3, 1, size=2000), epsilon=1).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("alternative", alternative, ALTERNATIVES)
    source = noise_source(noise)
    sample = _difference_rows(x, y, bounds)
    n, people = len(sample), rows_of_a_person(sample)
    if are_far(n, source):
        shares = PairedShares.whole(budget, people)
        nonzero, counted, doubled, cubes = None, n, far_signed_rank(sample, source), 0
    else:
        shares = PairedShares.of(n, people, budget, ranks=True)
        values = sample.values
        nonzeros = int(np.count_nonzero(values))
        nonzero, counted = _release_nonzero(nonzeros, n, shares, source, ranks=True)
        doubled, cubes = _signed_rank_statistic(values, counted, shares, source)
    null = signed_rank_null(counted)
    drawn_from = shares.noise(null.width, null.step)
    noisy, pvalue = release_statistic(doubled, null.law, drawn_from, alternative, source)
    if shares.ties:
        reach = tie_reach(n * shares.budget.pure_epsilon / shares.rows_per_person)
        factor = wilcoxon_factor(counted, _release_ties(cubes, counted, shares, reach, source))
        place = noisy if drawn_from.blocks == 1 else noisy - 0.5
        pvalue = tied_pvalue(
            null.law, place, drawn_from, alternative, factor=factor, miss=tie_miss(reach)
        )
    named = "the smaller of the rank sums of positive and negative differences"
    method = "Wilcoxon signed-rank test for paired data"
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        spent=budget,
        simulated=source.simulated,
        pvalue=pvalue,
        level="measured" if shares.ties else None,
        statistic=null.shown(noisy, alternative),
        statistic_name=named if alternative == "two-sided" else "",
        estimates={} if nonzero is None else {"nonzero": nonzero, "counted": counted},
        **_facts(sample, method, _SHIFT_NULLS[alternative], {"alternative": alternative}),
    )


def _facts(sample: Sample, method: str, null: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the public fields of a result."""
    return {
        "adjacency": "one",
        "method": method,
        "null_hypothesis": null,
        "sizes": {"n": len(sample)},
        "parameters": parameters,
        "rows_per_person": sample.rows_per_person,
    }


def _difference_rows(x: Any, y: Any, bounds: Bounds) -> Sample:
    """Read differences, or two measurements in their own units and subtract them.

    Values are clipped but not scaled: equal ones give 0 whatever the bounds of their columns. The
    bounds of the result are those of x.
    """
    sides: tuple[Sample, ...]
    if y is None:
        sides = (encode_sample(x, bounds, units="own"),)
    else:
        sides = encode_pairs(x, y, *bounds_of_measurements(bounds, x, y), units="own")
    if any(side.domain.levels != (0,) for side in sides):
        raise DataError("x and y must each be one numeric column.")
    if len(sides[0]) < 2:
        raise DataError("there must be at least 2 pairs.")
    if y is None:
        return sides[0]
    held = tuple(side.held for side in sides)
    return replace(sides[0], held=Joined(held, _subtracted, 1))


def _subtracted(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):  # infinite differences have a sign and a rank too
        return np.asarray(left - right)


# --- Descriptors ------------------------------------------------------------------------------


DESCRIPTORS = (
    Method(
        name="ks",
        question="paired",
        function=symmetry_test,
        about="any asymmetry",
        preset={"statistic": "ks"},
        unbounded=True,
        sentence=(
            "We used the private symmetry test of Kolmogorov–Smirnov type on differences of "
            f"pairs; {EXACT}"
        ),
        papers=("awan2022",),
    ),
    Method(
        name="kuiper",
        question="paired",
        function=symmetry_test,
        about="any asymmetry",
        preset={"statistic": "kuiper"},
        unbounded=True,
        sentence=(
            f"We used the private symmetry test of Kuiper type on differences of pairs; {EXACT}"
        ),
        papers=("awan2022",),
    ),
    Method(
        name="sign",
        question="paired",
        function=sign_test,
        unbounded=True,
        sentence=f"We used a sign test with Tulap noise; {EXACT}",
        papers=("awan2018",),
    ),
    Method(
        name="wilcoxon",
        question="paired",
        function=wilcoxon,
        about="signed ranks",
        unbounded=True,
        sentence="We used a private Wilcoxon signed-rank test",
        papers=("couch2019",),
    ),
)
