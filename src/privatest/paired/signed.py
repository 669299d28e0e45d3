"""Did a change do anything? Tests of paired data: symmetry, signs, signed ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source, secret_coins
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import number, one_of
from privatest.data.bounds import Bounds, bounds_of_measurements
from privatest.data.limits import rows_of_a_person
from privatest.data.samples import Sample, encode_pairs, encode_sample
from privatest.data.stream import Joined
from privatest.laws.counts import sign_law
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.laws.ranks import symmetry_law, wilcoxon_law
from privatest.mechanisms.lattice import lattice_outcome
from privatest.statistics.far_statistics import are_far, far_signed_rank, far_symmetry
from privatest.statistics.ranks import (
    Symmetry,
    sign_balance,
    sign_width,
    signed_rank,
    signed_rank_width,
    symmetry,
    symmetry_width,
)

__all__ = ["sign_test", "symmetry_test", "wilcoxon"]


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
    n = len(sample)
    name = "Kolmogorov–Smirnov" if statistic == "ks" else "Kuiper"
    return lattice_outcome(
        _symmetry(sample, statistic, source),
        symmetry_law(n, statistic),
        width=symmetry_width() * rows_of_a_person(sample),
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=_facts(sample, f"symmetry test for paired data ({name})", _SYMMETRIC, statistic),
        unit=n,
    )


@declare_level("valid")
def sign_test(
    x: Any,
    y: Any = None,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
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
        The statistic is the private number of positive differences ("greater", "less") or its
        distance from n/2.

    Notes
    -----
    A zero counts as positive or negative by its own secret coin, so the number is binomial under
    the null hypothesis. None is dropped: that would change n.

    **Sensitivity** 1, times the rows of a person. Proof: docs/proofs/rank-tests.md.

    **Privacy** The number, or its distance from n/2, is released with Tulap noise at (epsilon,
    delta); the p-value follows from it. For "greater" and "less" it is the most powerful
    private one (Awan and Slavkovic 2018).

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
    return lattice_outcome(
        sign_balance(sample, source.key()),
        sign_law(n),
        width=sign_width() * rows_of_a_person(sample),
        step=2,
        alternative=alternative,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=_facts(sample, "sign test for paired data", _SIGNS[alternative], None, alternative),
        unit=2,
        offset=n,
    )


@declare_level("valid")
def wilcoxon(
    x: Any,
    y: Any = None,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
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
        The statistic is the private sum of the ranks of positive differences ("greater", "less"),
        as SciPy's, or its distance from n(n + 1)/4 ("two-sided").

    Notes
    -----
    Zeros keep their ranks (Pratt) and get a secret random sign; ties are broken at random.
    So the law of W, the sum of sign(z) rank(|z|), is exact under the null hypothesis for every n.

    **Sensitivity** of W: 2n, times the rows of a person. Proof: docs/proofs/rank-tests.md.

    **Privacy** 2W or 2|W| is released at (epsilon, delta) with Tulap noise of width 4n, or Laplace
    noise where epsilon >= 4.16 and delta = 0; the p-value follows from it.

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
    n = len(sample)
    method = "Wilcoxon signed-rank test for paired data"
    return lattice_outcome(
        _signed_rank(sample, source),
        wilcoxon_law(n),
        width=signed_rank_width(n) * rows_of_a_person(sample),
        step=4,
        alternative=alternative,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=_facts(sample, method, _SHIFTS[alternative], None, alternative),
        unit=4,  # 2W = 4 (sum of positive ranks) - n (n + 1)
        offset=n * (n + 1),
    )


_SYMMETRIC = "differences are distributed symmetrically about 0"
_SIGNS = {
    "two-sided": "positive and negative differences are equally likely",
    "greater": "positive differences are at most as likely as negative ones",
    "less": "negative differences are at most as likely as positive ones",
}
_SHIFTS = {
    "two-sided": _SYMMETRIC,
    "greater": "differences are distributed symmetrically about 0 or a number below",
    "less": "differences are distributed symmetrically about 0 or a number above",
}


def _facts(
    sample: Sample,
    method: str,
    null: str,
    statistic: str | None,
    alternative: str | None = None,
) -> dict[str, Any]:
    """Return the public facts of a result."""
    chosen = {"statistic": statistic, "alternative": alternative}
    return {
        "adjacency": "one",
        "method": method,
        "null_hypothesis": null,
        "sizes": {"n": len(sample)},
        "parameters": {name: value for name, value in chosen.items() if value is not None},
        "unit": sample.unit,
    }


def _symmetry(differences: Sample, statistic: Symmetry, noise: NoiseSource) -> int:
    """Return n times the distance, ties in a secret order and zeros with secret signs."""
    n = len(differences)
    if are_far(n):
        return far_symmetry(differences, statistic, noise)
    values = np.sort(differences.values)  # for speed: any order would do
    return symmetry(values, statistic, noise.permutation(n), secret_coins(noise, n))


def _signed_rank(differences: Sample, noise: NoiseSource) -> int:
    """Return 2W, ties in a secret order and zeros with secret signs."""
    n = len(differences)
    if are_far(n):
        return far_signed_rank(differences, noise)
    return signed_rank(differences.values, noise.permutation(n), secret_coins(noise, n))


def _difference_rows(x: Any, y: Any, bounds: Bounds) -> Sample:
    """Read differences, or two measurements in their own units: those are subtracted.

    Values are clipped and no more. Equal ones give 0 whatever the bounds of their columns, and
    the two sides of x - y can be told apart by its sign alone. The sample says how many there are
    and what the unit of privacy is; its bounds are those of x.
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
