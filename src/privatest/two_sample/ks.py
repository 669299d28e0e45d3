"""Kolmogorov-Smirnov and Kuiper tests of two samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.bounds import Bounds
from privatest.data.by_group import resolve_samples
from privatest.data.categories import Category
from privatest.data.cuts import CheckedGrid, Grid, cut_points, read_grid
from privatest.data.samples import TwoSamples, encode_samples
from privatest.laws.ks_two_sample import two_sample_law
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.mechanisms.lattice import MECHANISMS, Mechanism, lattice_outcome
from privatest.statistics.bins import parallel
from privatest.statistics.cell_summaries import counts_of
from privatest.statistics.ecdf import (
    LABELLED_ROWS,
    TWO_SAMPLE_STATISTICS,
    TwoSampleStatistic,
    two_sample,
    two_sample_counts,
    two_sample_width,
)
from privatest.statistics.ecdf_cells import two_sample_cells
from privatest.statistics.far_statistics import are_far, far_two_sample
from privatest.two_sample.common import NULL_HYPOTHESIS, check_sizes, shown_sizes
from privatest.two_sample.ks_groups import private_groups_ks

__all__ = ["ks_2samp"]

_WHOLE_ROWS = 1 << 17  # of both samples: up to here all are labelled, which is quick
_NAMES = {"ks": "Kolmogorov-Smirnov", "kuiper": "Kuiper"}
_NULLS = {
    "two-sided": NULL_HYPOTHESIS,
    "greater": "the distribution function of the first sample is nowhere above the second's",
    "less": "the distribution function of the first sample is nowhere below the second's",
}


@declare_level("valid", measured="n m > 4,000,000 with n ≠ m")
def ks_2samp(
    x: Any,
    y: Any = None,
    *,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    statistic: TwoSampleStatistic = "ks",
    alternative: Alternative = "two-sided",
    adjacency: Adjacency | None = None,
    bounds: Bounds = None,
    grid: Grid = None,
    n_permutations: int = 999,
    mechanism: Mechanism = "auto",
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples of one variable come from the same distribution.

    Only the order of the values counts, so that neither bounds nor a scale are needed, and
    heavy tails do no harm.

    Parameters
    ----------
    x, y : array, series or table of one column
        The two samples.
    group, groups, columns
        Where x is one frame, how it is split and compared: as in :func:`privatest.mmd_test`.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    statistic : {"ks", "kuiper"}
        Largest difference of the empirical distribution functions, best for a shift; or largest
        plus smallest (in absolute value), best for scale and shape.
    alternative : {"two-sided", "greater", "less"}
        For "ks", as in SciPy: greater: the distribution function of x lies above that of y
        somewhere (x tends to smaller values there); less: below.
    adjacency : {"one", "both", "row"}, optional
        What is hidden: one record within its group, one in each group, or a record together
        with its group, so that group sizes are private. By default "one" for samples, and "row"
        for a frame, as in :func:`mmd_test`.
    bounds : None, pair or Schema
        Not needed. A schema checks and clips values and says how many rows a person may have.
    grid : None, int, array or "exact"
        Public cut points, or a number of equal cells between the bounds, at most 8192: only the
        cell of a value counts, and data is read once, without sorting it. By default all values
        are compared; but of more than 16,384 rows whose groups are private and permuted, those
        at 1024 ranks are, unless it is "exact".
    n_permutations : int
        Number of permutations; for ``adjacency="row"`` only.
    mechanism : {"auto", "tulap", "laplace"}
        The noise. "auto" is Tulap, or Laplace where epsilon >= 4.16, delta = 0 and the distance
        has steps finer than half its sensitivity (not for n = m or m = 2n).
    rng : None, int or Generator
        Public randomness, for permutations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        With the private distance and its p-value; for "row" the p-value alone.

    Notes
    -----
    The one-sided tests keep their level whenever the distribution function of x lies nowhere
    above ("greater") or below ("less") that of y; for "row" where the two are equal.

    With a grid values of one cell are ties. Up to 4,194,304 rows they are put in a secret random
    order, and p-values are as exact as without a grid; beyond, distances are measured at the ends
    of cells only, and p-values are too large: a level of .05 is .044 for 1024 cells that are
    equally likely, .022 for 16.

    Ties are broken at random, in secret, so that the law of the distance under the null
    hypothesis is that of continuous data (for "row" permutations take care of ties). The distance
    is then a little larger than that of the two distribution functions.

    **Sensitivity** 1/min(n, m) for "one", 1/n + 1/m for "both", times the rows of a person;
    attained. "row": (N-1)/N² observed and twice that permuted, for (n m/N²) times the distance;
    1/N both where labels are swapped in pairs (``relabel`` of :func:`mmd_test`, as "auto").
    Proof: docs/proofs/ks-type.md and docs/proofs/private-groups.md.

    **Privacy** n m times the distance, an integer, is released with noise at (epsilon, delta);
    the p-value follows from it by the exact law.
    "row": the p-value (a multiple of 1/10,000) of the smoothed permutation test is released.

    References
    ----------
    Awan and Wang (2022), "Differentially private Kolmogorov-Smirnov-type tests".

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.standard_normal(2000), rng.standard_cauchy(1500)
    >>> ks_2samp(x, y, statistic="kuiper", epsilon=1).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("statistic", statistic, TWO_SAMPLE_STATISTICS)
    one_of("alternative", alternative, ALTERNATIVES)
    if alternative != "two-sided" and statistic != "ks":
        raise ParameterError("alternative must be 'two-sided' for statistic='kuiper'.")
    layout = resolve_samples((x, y), bounds, adjacency, group=group, groups=groups, columns=columns)
    adjacency = layout.adjacency
    one_of("mechanism", mechanism, MECHANISMS)
    n_permutations = integer_at_least("n_permutations", n_permutations, 1)
    if adjacency == "row" and mechanism != "auto":
        raise ParameterError("mechanism must be 'auto' for adjacency='row', a permutation test.")
    checked = read_grid(grid)
    generator, source = public_generator(rng), noise_source(noise)
    data, bounds = layout.read((x, y))
    samples = encode_samples(data[0], data[1], bounds, units="own", adjacency=adjacency)
    if samples.domain.levels != (0,):
        raise DataError("x and y must have one numeric column: their values are ranked.")
    check_sizes(samples, adjacency)
    parameters: dict[str, Any] = {"statistic": statistic, "alternative": alternative}
    facts = {
        "adjacency": adjacency,
        "method_id": f"ks_2samp/{statistic}",
        "method": f"two-sample {_NAMES[statistic]} test",
        "null_hypothesis": _NULLS[alternative],
        "sizes": shown_sizes(samples, adjacency),
        "parameters": parameters,
        "rows_per_person": samples.rows_per_person,
    }
    common: dict[str, Any] = {"budget": budget, "alpha": alpha, "noise": source, "facts": facts}
    cuts = _cuts(checked, samples)
    if cuts is not None:
        parameters["grid"] = len(cuts) + 1
    if adjacency == "row":
        exact = isinstance(checked, str)
        return private_groups_ks(
            samples, statistic, alternative, n_permutations, generator, common, cuts, exact=exact
        )
    n, m = len(samples.x), len(samples.y)
    width = samples.rows_per_person * two_sample_width(n, m, adjacency)
    return lattice_outcome(
        _distance(samples, statistic, alternative, cuts, source),
        two_sample_law(statistic, n, m, one_sided=alternative != "two-sided"),
        width=width,
        step=math.gcd(n, m),
        mechanism=mechanism,
        unit=n * m,
        **common,
    )


def _cuts(grid: CheckedGrid, samples: TwoSamples) -> NDArray[np.float64] | None:
    """Return public cut points, if there are any."""
    if grid is None or isinstance(grid, str):
        return None
    box = samples.x.box
    return cut_points(grid, float(box.lower[0]), float(box.upper[0]))


def _distance(
    samples: TwoSamples,
    statistic: TwoSampleStatistic,
    alternative: Alternative,
    cuts: NDArray[np.float64] | None,
    noise: NoiseSource,
) -> int:
    """Return n m T of public groups, ties and cells in a secret order."""
    total = len(samples.x) + len(samples.y)
    if cuts is not None:
        labels = noise.permutation(total) if total <= LABELLED_ROWS else None
        of_x, of_y = counts_of(samples, cuts)
        return two_sample_counts(of_x, of_y, statistic, labels, alternative)
    if are_far(total, noise):
        return far_two_sample(samples.x, samples.y, statistic, noise, alternative)
    x, y = parallel(lambda sample: sample.values, samples, total)
    if total <= _WHOLE_ROWS or noise.constant_time:  # the time of the other way follows from values
        x, y = parallel(np.sort, (x, y), total)  # for speed: any order would do
        return two_sample(x, y, statistic, noise.permutation(total), alternative)
    return two_sample_cells(x, y, statistic, noise.permutation, alternative)
