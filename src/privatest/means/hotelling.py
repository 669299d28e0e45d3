"""Hotelling's t² test for the means of several columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.errors import ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng
from privatest.data.bounds import Bounds
from privatest.data.by_group import resolve_samples
from privatest.data.categories import Category
from privatest.data.samples import Sample
from privatest.means.bootstrap import Contrast
from privatest.means.inference import (
    Finding,
    checked_bootstrap,
    estimates,
    infer,
    outcome,
)
from privatest.means.intervals import MeanIntervals
from privatest.means.samples import (
    BY_SIZES,
    compare_two,
    look_at_one,
    numeric_sample,
    numeric_samples,
    sample_budget,
)

__all__ = ["hotelling_1samp", "hotelling_test"]


@declare_level("measured")
def hotelling_test(
    x: Any,
    y: Any = None,
    *,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    equal_covariance: bool = True,
    n_bootstrap: int = 999,
    adjacency: Adjacency | None = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether two samples have the same mean in every column.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        The two samples; a row is a record, a 1-D array is one column.
    group, groups, columns
        Where x is one frame, how it is split and compared: as in :func:`privatest.mmd_test`.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns; values outside are clipped. Tighter bounds need less noise.
    epsilon, delta : float, int, str or Decimal
        The privacy budget. delta > 0 selects one Gaussian mechanism for mean and covariance,
        which is better in many dimensions (about 30).
    alpha : float
        Level of the decision; the confidence region has level 1 - alpha.
    equal_covariance : bool
        Whether to assume that both samples have the same covariance, and pool it.
    n_bootstrap : int
        Number of bootstrap replicates, at least 1/alpha - 1; one column needs none.
    adjacency : {"one", "both"}, optional
        What is hidden: one record within its group, or one in each group; each sample then gets
        half of the budget. Group sizes are public. By default "one"; for a frame it must be
        passed, or be what the schema says.
    rng : None, int or Generator
        Public randomness for the bootstrap.
    noise : NoiseSource, optional
        Secret randomness; omit it except in simulations.

    Returns
    -------
    Outcome
        With the private t² and, in ``estimates``, the private means, their difference (x - y)
        with simultaneous intervals ``lower`` and ``upper``, and the private covariance. The
        confidence region is all θ with (c - θ)' region_shape^-1 (c - θ) at most region_radius,
        with c = region_centre; it excludes 0 exactly if the test rejects. The means and their
        difference are cut to what the bounds allow, the centre is not.

    Notes
    -----
    **Sensitivity** With the bounds mapped to [-1, 1]^d, a replaced record moves the mean of its
    sample by at most 2/n in every entry. With two or three columns it moves a mean of squares by
    at most 1/n and one of products by 2/n; with more it raises eigenvalues of Σ x x'/d by at most
    1 together, lowers others by at most 1 together, and moves the log density of the axes by d
    times their concentration; all times the rows per person. Proofs: docs/proofs/means.md,
    docs/proofs/covariance.md; for delta > 0 docs/proofs/moments.md.

    **Privacy** Means and covariances of both samples are released at (epsilon, delta); everything
    else is computed from them. A record is in one sample, so each sample gets the whole budget. If
    delta = 0, 0.7 epsilon goes to the mean (l-infinity mechanism) and 0.3 epsilon to the second
    moment (its entries, or eigenvalues and axes). The level is that of a parametric bootstrap: it
    was measured, not proved.

    References
    ----------
    Dunsche, Kutta and Dette (2022), "Multivariate mean comparison under differential privacy".

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(0, 8, size=(2000, 3)), rng.uniform(1, 9, size=(1500, 3))
    >>> outcome = hotelling_test(x, y, bounds=(0, 10), epsilon=1, rng=0)
    >>> outcome.reject, outcome.estimates["difference"].shape
    (True, (3,))
    """
    budget = Budget(epsilon, delta)
    options = checked_bootstrap(alpha, n_bootstrap, rng)
    layout = resolve_samples(
        (x, y),
        bounds,
        adjacency,
        public_groups=BY_SIZES,
        group=group,
        groups=groups,
        columns=columns,
    )
    adjacency = layout.adjacency
    each = sample_budget(budget, adjacency)
    source = noise_source(noise)
    data, bounds = layout.read((x, y))
    samples = numeric_samples(data[0], data[1], bounds, adjacency)
    contrast = compare_two(samples, each, source, equal_covariance=equal_covariance)
    facts: dict[str, Any] = {
        "spent": budget,
        "adjacency": adjacency,
        "method": "two-sample Hotelling test",
        "null_hypothesis": "the two samples have the same means",
        "sizes": {"n": len(samples.x), "m": len(samples.y)},
        "rows_per_person": samples.rows_per_person,
        "simulated": source.simulated,
    }
    found = infer(contrast, np.zeros(samples.domain.dimension), **options)
    return _outcome(contrast, found, samples.x, options, facts, equal_covariance=equal_covariance)


@declare_level("measured")
def hotelling_1samp(
    x: Any,
    mean: ArrayLike,
    *,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    n_bootstrap: int = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether a sample has given means.

    Parameters
    ----------
    x : array, data frame or Arrow table
        The sample.
    mean : float or sequence of float
        The hypothesised means, which are public: one for all columns or one for each.
    bounds, epsilon, delta, alpha, n_bootstrap, rng, noise
        As in :func:`hotelling_test`.

    Returns
    -------
    Outcome
        With the private t² and, in ``estimates``, the private mean with simultaneous intervals,
        the private covariance and the confidence region, as in :func:`hotelling_test`.

    Notes
    -----
    **Sensitivity** As in :func:`hotelling_test`.

    **Privacy** Mean and covariance of the sample are released at (epsilon, delta); everything
    else is computed from them.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 8, size=(2000, 2))
    >>> hotelling_1samp(x, [4, 5], bounds=(0, 10), epsilon=1, rng=0).reject
    True
    """
    budget = Budget(epsilon, delta)
    options = checked_bootstrap(alpha, n_bootstrap, rng)
    source = noise_source(noise)
    sample = numeric_sample(x, bounds)
    box = sample.box
    hypothesis = (_public_means(mean, sample.domain.dimension) - box.centre) / box.half
    contrast = look_at_one(sample, budget, source)
    facts: dict[str, Any] = {
        "spent": budget,
        "adjacency": "one",
        "method": "one-sample Hotelling test",
        "null_hypothesis": "the means are the given ones",
        "sizes": {"n": len(sample)},
        "rows_per_person": sample.rows_per_person,
        "simulated": source.simulated,
    }
    found = infer(contrast, hypothesis, **options)
    return _outcome(contrast, found, sample, options, facts)


def _outcome(
    contrast: Contrast,
    found: Finding,
    sample: Sample,
    options: dict[str, Any],
    facts: dict[str, Any],
    **shown: object,
) -> Outcome:
    released = estimates(contrast, sample.box, found)
    rest = {name: value for name, value in options.items() if name != "alpha"}
    intervals = MeanIntervals(contrast, sample.box, **rest)
    return outcome(found, released, sample, options, facts, intervals, **shown)


def _public_means(mean: ArrayLike, dimension: int) -> NDArray[np.float64]:
    problem = f"mean must be a finite number, or one for each of the {dimension} columns."
    try:
        means = np.asarray(mean, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(problem) from None
    if means.shape not in {(), (dimension,)} or not np.isfinite(means).all():
        raise ParameterError(problem)
    return np.broadcast_to(means, (dimension,))
