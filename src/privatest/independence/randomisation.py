"""Is X independent of Y given Z, where the law of X given Z is known? X is drawn anew.

Proof: docs/proofs/conditional.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget, PermutationSensitivity
from privatest.core.results import Decision
from privatest.core.user_code import run_user_code
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.bounds import Bounds
from privatest.data.samples import TwoSamples, encode_pairs
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result

__all__ = ["conditional_randomisation_test"]

Floats = NDArray[np.float64]

_BLOCK = 1 << 12  # rows drawn anew at a time
_NULLS = {
    "two-sided": "x and y are independent given z",
    "greater": "x and y are independent given z, or fall together",
    "less": "x and y are independent given z, or rise together",
}


@declare_level("valid")
def conditional_randomisation_test(
    x: Any,
    y: Any,
    z: Any,
    quantile: Callable[[Floats, Floats], Any],
    *,
    bounds_x: Bounds,
    bounds_y: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Release = "pvalue",
    alternative: Alternative = "two-sided",
    n_resamples: int = 199,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately whether x and y are independent given z; the law of x given z is known.

    As in a trial whose treatment was drawn by a known rule: x is drawn anew for every row, and
    the observed covariance of x and y is compared with those of the draws.

    Parameters
    ----------
    x, y : array, series or table of one numeric column
        The two sides; row i of each belongs to the same record.
    z : array of one or two dimensions
        What is given; it is only passed to ``quantile``.
    quantile : callable
        ``quantile(u, z)``: the quantiles of x at levels u in (0, 1) for rows z, an array as long as
        u. It must work row by row: a result that depends on other rows is not private.
    bounds_x, bounds_y : pair or Schema
        Public bounds; values outside are clipped, those of ``quantile`` too.
    epsilon, delta, alpha
        The privacy budget, and the level of the decision.
    release : {"pvalue", "decision"}
        What is published; a decision needs less noise.
    alternative : {"two-sided", "greater", "less"}
        "greater": y rises with x, given z; it needs half the noise.
    n_resamples : int
        How often x is drawn anew.
    rng : None, int or Generator
        Public randomness, for these draws.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome or Decision
        The p-value, or the decision.

    Raises
    ------
    PrivatestError
        ``quantile`` failed on the private data, or gave no number for each row.

    Notes
    -----
    A true hypothesis is rejected with probability at most alpha, at every n and whatever the law
    of y given z, if ``quantile`` is right: the observed x is then one more draw.

    **Sensitivity** With both columns mapped to [-1, 1] the mean product of each draw moves by at
    most 2/n, and its distance from the mean of all draws by 4/n, times the rows of a person. Rows
    are put in a secret order first. Proof: docs/proofs/conditional.md.

    **Privacy** The p-value (a multiple of 1/10,000) or the decision of the smoothed permutation
    test is released at (epsilon, delta), if ``quantile`` works row by row and does not fail. That
    it failed is told, and nothing of what it said.

    References
    ----------
    Kalemaj, Kasiviswanathan and Ramdas (2024), Differentially private conditional independence
    testing; Candès, Fan, Janson and Lv (2018).

    Examples
    --------
    A treatment is given with a probability that depends on age, by a known rule.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 80, size=3000)
    >>> rule = lambda u, age: u < age / 100
    >>> treated = rule(rng.uniform(size=3000), age)
    >>> score = np.clip(age / 100 + 0.2 * treated + rng.normal(0, 0.1, size=3000), 0, 1)
    >>> conditional_randomisation_test(
    ...     treated.astype(float), score, age, lambda u, z: u > 1 - z / 100,
    ...     bounds_x=(0, 1), bounds_y=(0, 1), epsilon=1, rng=0,
    ... ).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    one_of("release", release, RELEASES)
    one_of("alternative", alternative, ALTERNATIVES)
    if not callable(quantile):
        raise ParameterError("quantile must be a function of levels u and rows z.")
    n_resamples = integer_at_least("n_resamples", n_resamples, 1)
    generator, source = public_generator(rng), noise_source(noise)
    sides, given = _read(x, y, z, bounds_x, bounds_y)
    n = len(given)
    sums = _products(sides, given, quantile, source.permutation(n), n_resamples, generator)
    moved = 2.0
    if alternative == "two-sided":
        sums, moved = np.abs(sums - sums.mean()), 4.0
    elif alternative == "less":
        sums = -sums
    exact = PermutationSensitivity(moved / n, moved / n) * sides.rows_per_person
    return permutation_result(
        sums,
        sensitivity=exact.widened(_rounding(n)),
        budget=budget,
        alpha=alpha,
        release=release,
        noise=source,
        facts={
            "adjacency": "one",
            "method": "conditional randomisation test",
            "null_hypothesis": _NULLS[alternative],
            "sizes": {"n": n},
            "parameters": {"alternative": alternative, "n_resamples": n_resamples},
            "rows_per_person": sides.rows_per_person,
        },
    )


def _read(
    x: Any, y: Any, z: Any, bounds_x: Bounds, bounds_y: Bounds
) -> tuple[TwoSamples, NDArray[Any]]:
    for name, bounds in (("bounds_x", bounds_x), ("bounds_y", bounds_y)):
        if bounds is None:
            raise ParameterError(f"{name} must be given: found from the data they would leak it.")
    sides, given = encode_pairs(x, y, bounds_x, bounds_y), np.asarray(z)
    if any(side.domain.levels != (0,) for side in sides):
        raise DataError("x and y must each be one numeric column.")
    if given.ndim not in (1, 2) or len(given) != len(sides.x):
        raise DataError("z must be an array with as many rows as x and y.")
    if len(given) < 4:
        raise DataError("x, y and z must have at least 4 rows.")
    return sides, given


def _products(
    sides: TwoSamples,
    given: NDArray[Any],
    quantile: Callable[[Floats, Floats], Any],
    order: NDArray[np.intp],
    n_resamples: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the mean product of x and y, observed first, and with x drawn anew."""
    lower, half = float(sides.x.box.lower[0]), float(sides.x.box.half[0])
    own, other = (2 * side.values[order] - 1 for side in sides)
    rows, sums = given[order], np.zeros(n_resamples + 1)
    sums[0] = np.sum(own * other)
    for start in range(0, len(rows), _BLOCK):
        part, weights = rows[start : start + _BLOCK], other[start : start + _BLOCK]
        for draw in range(1, n_resamples + 1):
            levels = rng.uniform(size=len(part))
            drawn = _drawn(quantile, levels, part)
            with np.errstate(all="ignore"):
                unit = np.clip((drawn - lower) / half - 1, -1.0, 1.0)
            # what is not a number becomes a public one: refusing it would tell of a row
            sums[draw] += np.sum(np.where(np.isnan(unit), -1.0, unit) * weights)
    mean: Floats = sums / len(rows)
    return mean


def _drawn(quantile: Callable[[Floats, Floats], Any], levels: Floats, rows: NDArray[Any]) -> Floats:
    """Return the quantiles of private rows, or an error that says nothing of them."""

    def numbers() -> Floats:
        # copies: it may change its arguments, and return them
        found = np.array(quantile(levels.copy(), rows.copy()), dtype=np.float64)
        if found.shape != (len(rows),):
            raise ValueError
        return found

    return run_user_code(
        numbers,
        message="quantile failed on the private data, or did not return one number for each row; "
        "no noise was drawn. What it said is withheld, as it may hold values.",
    )


def _rounding(n: int) -> float:
    """Bound the rounding error of a mean of n products in [-1, 1], and of its distance."""
    return 8.0 * (_BLOCK + n / _BLOCK + 64) * 2.0**-53
