"""Kolmogorov-Smirnov and Kuiper tests of two samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.bounds import Bounds
from privatest.data.by_group import read_samples
from privatest.data.categories import Category
from privatest.data.samples import TwoSamples, encode_samples
from privatest.laws.ks_two_sample import two_sample_law
from privatest.laws.law import ALTERNATIVES, Alternative
from privatest.mechanisms.lattice import MECHANISMS, Mechanism, lattice_outcome
from privatest.mechanisms.permutation import permutation_result
from privatest.statistics.ecdf import (
    TWO_SAMPLE_STATISTICS,
    TwoSampleStatistic,
    two_sample,
    two_sample_width,
)
from privatest.statistics.ipm import LineMetric
from privatest.statistics.pair_swaps import pair_swaps_sensitivity, permuted_swaps_line
from privatest.statistics.private_groups import permuted_groups_line, private_groups_sensitivity
from privatest.two_sample.common import NULL_HYPOTHESIS, check_sizes, shown_sizes, swaps_labels

__all__ = ["ks_2samp"]

_NAMES = {"ks": "Kolmogorov-Smirnov", "kuiper": "Kuiper"}
_NULLS = {
    "two-sided": NULL_HYPOTHESIS,
    "greater": "the distribution function of the first sample is nowhere above the second's",
    "less": "the distribution function of the first sample is nowhere below the second's",
}
_KINDS: dict[str, Any] = {"two-sided": "kolmogorov", "greater": "above", "less": "below"}


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
    data, bounds, adjacency = read_samples(
        (x, y), bounds, adjacency, group=group, groups=groups, columns=columns
    )
    one_of("mechanism", mechanism, MECHANISMS)
    n_permutations = integer_at_least("n_permutations", n_permutations, 1)
    if adjacency == "row" and mechanism != "auto":
        raise ParameterError("mechanism must be 'auto' for adjacency='row', a permutation test.")
    generator, source = public_generator(rng), noise_source(noise)
    samples = encode_samples(data[0], data[1], bounds, units="own")
    if samples.domain.levels != (0,):
        raise DataError("x and y must have one numeric column: their values are ranked.")
    check_sizes(samples, adjacency)
    facts = {
        "adjacency": adjacency,
        "method": f"two-sample {_NAMES[statistic]} test",
        "null_hypothesis": _NULLS[alternative],
        "sizes": shown_sizes(samples, adjacency),
        "parameters": {"statistic": statistic, "alternative": alternative},
        "unit": samples.unit,
    }
    common: dict[str, Any] = {"budget": budget, "alpha": alpha, "noise": source, "facts": facts}
    if adjacency == "row":
        return _private_groups(samples, statistic, alternative, n_permutations, generator, common)
    n, m = len(samples.x), len(samples.y)
    width = samples.rows_per_person * two_sample_width(n, m, adjacency)
    x, y = np.sort(samples.x.values), np.sort(samples.y.values)  # for speed: any order would do
    return lattice_outcome(
        two_sample(x, y, statistic, source.permutation(n + m), alternative),
        two_sample_law(statistic, n, m, one_sided=alternative != "two-sided"),
        width=width,
        step=math.gcd(n, m),
        mechanism=mechanism,
        unit=n * m,
        **common,
    )


def _private_groups(
    samples: TwoSamples,
    statistic: TwoSampleStatistic,
    alternative: Alternative,
    n_permutations: int,
    rng: np.random.Generator,
    common: dict[str, Any],
) -> Outcome:
    """Permute the groups: their sizes are private, and so is any law that depends on them."""
    total = len(samples.x) + len(samples.y)
    order = common["noise"].permutation(total)
    # ranks have the same order and the same ties as the values, and cannot overflow
    _, ranks = np.unique(np.concatenate([samples.x.values, samples.y.values]), return_inverse=True)
    rows = ranks.reshape(-1, 1)[order].astype(np.float64)
    labels = (order < len(samples.x)).astype(np.float64)
    kind: Any = "kuiper" if statistic == "kuiper" else _KINDS[alternative]
    metric = LineMetric(np.ones((1, 1)), kind, 1.0)
    rows_per_person, epsilon = samples.rows_per_person, common["budget"].pure_epsilon
    swap = swaps_labels("auto", total, rows_per_person, epsilon, "pvalue")
    permuted = permuted_swaps_line if swap else permuted_groups_line
    bound = pair_swaps_sensitivity if swap else private_groups_sensitivity
    values, errors = permuted(rows, labels, metric, n_permutations, rng)
    sensitivity = (bound(metric.diameter, total) * rows_per_person).widened(float(errors[0]))
    common["facts"]["parameters"] |= {
        "n_permutations": n_permutations,
        "relabel": "swap" if swap else "permute",
    }
    result = permutation_result(values[0], sensitivity=sensitivity, release="pvalue", **common)
    assert isinstance(result, Outcome)  # what release="pvalue" gives
    return result
