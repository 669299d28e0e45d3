"""Does one variable follow a given distribution?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, number, one_of, public_generator
from privatest.data.bounds import Bounds
from privatest.data.columns import Units
from privatest.data.cuts import CheckedGrid, Grid, cut_points, read_grid
from privatest.data.limits import rows_of_a_person
from privatest.data.samples import Sample, encode_sample
from privatest.goodness_of_fit.reference_cdf import ReferenceCdf, read_cdf
from privatest.laws.ks_one_sample import one_sample_law
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.mechanisms.lattice import MECHANISMS, Mechanism, lattice_outcome
from privatest.statistics.cell_summaries import counts_of
from privatest.statistics.ecdf import (
    LABELLED_ROWS,
    LATTICE,
    ONE_SAMPLE_STATISTICS,
    OneSampleStatistic,
    on_lattice,
    one_sample,
    one_sample_counts,
    one_sample_width,
)

__all__ = ["ks_1samp"]

_NAMES = {
    "ks": "Kolmogorov-Smirnov",
    "kuiper": "Kuiper",
    "cvm": "Cramér-von Mises",
    "wasserstein": "Wasserstein",
}
_NULLS = {
    "two-sided": "the data come from",
    "greater": "the distribution function of the data is nowhere above that of",
    "less": "the distribution function of the data is nowhere below that of",
}


@declare_level("valid", measured="'kuiper' beyond 400 rows, 'cvm' and 'wasserstein'")
def ks_1samp(
    x: Any,
    cdf: Any,
    *,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    statistic: OneSampleStatistic = "ks",
    alternative: Alternative = "two-sided",
    mechanism: Mechanism = "auto",
    bounds: Bounds = None,
    grid: Grid = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether a sample comes from a given distribution.

    Parameters
    ----------
    x : array, series or table of one column
        The sample.
    cdf : callable, frozen scipy distribution, str or (str, parameters)
        The distribution function: of an array of any length, value by value, errors included
        (a value on which it fails counts as 1/2); ``scipy.stats.norm(0, 1)``;
        ``"norm(0, 1)"``, ``"gamma(a=2, scale=3)"``; or ``("norm", (0, 1))``. It is checked on
        public numbers before the data is read. It may have jumps.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    statistic : {"ks", "kuiper", "cvm", "wasserstein"}
        Distance T between the empirical and the given distribution function: largest difference;
        largest plus smallest; root of the mean square (Cramér-von Mises); mean absolute.
    alternative : {"two-sided", "greater", "less"}
        For "ks", as in SciPy: greater: the distribution function of x lies above ``cdf``
        somewhere (x tends to smaller values there); less: below.
    mechanism : {"auto", "tulap", "laplace"}
        The noise. "auto" is Tulap, or Laplace where epsilon >= 4.16 and delta = 0.
    bounds : None, pair or Schema
        Not needed. A schema checks and clips values and says how many rows a person may have.
    grid : None, int, array or "exact"
        Public cut points, or a number of equal cells between the bounds, at most 8192: only the
        cell of a value counts, and data is read once, without sorting it. None and "exact" take
        the values as they are.
    rng : None, int or Generator
        Public randomness, for values where the distribution function jumps and for clipped ones.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        With the private distance and its p-value.

    Notes
    -----
    **Sensitivity** 1/n, times the rows of a person, for every statistic, ties included.
    Proof: docs/proofs/ks-type.md.

    **Privacy** n T in steps of 2^-20 is released with noise at (epsilon, delta); the p-value
    follows from it by the law of T. This holds if ``cdf`` evaluates each value on its own.

    **Validity** Each value becomes u, uniform between the left limit of the cdf there and the
    cdf, so that u is uniform under the null hypothesis, with or without jumps and clipping. KS and
    Kuiper laws are exact for n <= 1000 and n <= 400; otherwise, and for the others, a bound on
    the law's error is added to the p-value. The one-sided tests keep their level whenever the
    distribution function lies nowhere above ("greater") or below ("less") the given one. With a
    grid u is uniform between the values of the cdf at the ends of a cell; for KS and Kuiper of
    more than 4,194,304 rows distances are measured at the ends of cells only, and p-values are
    too large: a level of .05 is .044 for 1024 cells that are equally likely, .022 for 16.

    References
    ----------
    Awan and Wang (2022), "Differentially private Kolmogorov-Smirnov-type tests".

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_cauchy(2000)
    >>> ks_1samp(x, "norm(0, 1)", epsilon=1).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("statistic", statistic, ONE_SAMPLE_STATISTICS)
    one_of("alternative", alternative, ALTERNATIVES)
    if alternative != "two-sided" and statistic != "ks":
        raise ParameterError("alternative must be 'two-sided' unless statistic='ks'.")
    one_of("mechanism", mechanism, MECHANISMS)
    generator, source = public_generator(rng), noise_source(noise)
    reference = read_cdf(cdf)
    checked = read_grid(grid)
    sample = encode_one_column(x, bounds, units="own")
    n = len(sample)
    cuts = _cuts(checked, sample)
    if cuts is None:
        u = _probabilities(sample, reference, generator, source)
        distance = one_sample(u, statistic, alternative)
    else:
        labelled = n <= LABELLED_ROWS or statistic not in ("ks", "kuiper")
        labels = _labels(n, generator, source) if labelled else None
        (counts,), at_cuts = counts_of((sample,), cuts), reference.at(cuts)
        distance = one_sample_counts(counts, at_cuts, statistic, labels, alternative)
    return lattice_outcome(
        on_lattice(distance),
        one_sample_law(statistic, n, one_sided=alternative != "two-sided").scaled(LATTICE),
        width=rows_of_a_person(sample) * one_sample_width(n),
        mechanism=mechanism,
        unit=n * LATTICE,
        budget=budget,
        alpha=alpha,
        noise=source,
        facts={
            "adjacency": "one",
            "method_id": f"ks_1samp/{statistic}",
            "method": f"one-sample {_NAMES[statistic]} test",
            "null_hypothesis": f"{_NULLS[alternative]} {reference.name}",
            "sizes": {"n": n},
            "parameters": {
                "statistic": statistic,
                "alternative": alternative,
                "distribution": reference.name,
            }
            | ({} if cuts is None else {"grid": len(cuts) + 1}),
            "rows_per_person": sample.rows_per_person,
        },
    )


def encode_one_column(x: Any, bounds: Bounds, *, units: Units = "box") -> Sample:
    """Read a sample of one numeric column and at least two rows."""
    sample = encode_sample(x, bounds, units=units)
    if sample.domain.levels != (0,):
        raise DataError("x must have one numeric column: its values are ranked.")
    if len(sample) < 2:
        raise DataError("x must have at least 2 rows.")
    return sample


def _cuts(grid: CheckedGrid, sample: Sample) -> NDArray[np.float64] | None:
    if grid is None or isinstance(grid, str):
        return None
    return cut_points(grid, float(sample.box.lower[0]), float(sample.box.upper[0]))


def _labels(count: int, rng: np.random.Generator, noise: NoiseSource) -> NDArray[np.float64]:
    """Draw a label for each record.

    Labels are public randomness, but which record gets which label is secret: otherwise the
    order of rows, which may depend on values, would link labels to values.
    """
    return rng.random(count)[noise.permutation(count)]


def _probabilities(
    sample: Sample,
    reference: ReferenceCdf,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> NDArray[np.float64]:
    """Return u between F(x-) and F(x), by a label for each record."""
    values, box = sample.values, sample.box
    left, right = reference.limits(values)
    # all values that were clipped to a bound share what lies beyond it
    left[values == box.lower[0]] = 0.0
    right[values == box.upper[0]] = 1.0
    labels = _labels(len(values), rng, noise)
    return np.asarray(np.clip(left + (right - left) * labels, 0.0, 1.0))
