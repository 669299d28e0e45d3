"""Do several groups have the same mean? Analysis of variance from noisy means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.levels import declare_level
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.results import Outcome
from privatest.core.validation import Rng, reject
from privatest.data.bounds import Bounds
from privatest.data.by_group import group_names, resolve_samples
from privatest.data.categories import Category
from privatest.means.inference import (
    Calibration,
    calibrated,
    checked_bootstrap,
    checked_calibration,
)
from privatest.means.samples import (
    BY_SIZES,
    check_one_column,
    in_units,
    numeric_groups,
    release_rows,
    sample_budget,
)
from privatest.several_groups.group_means import GroupIntervals, GroupMeans, infer_groups
from privatest.two_sample.ranks import PublicGroups, group_facts

__all__ = ["f_oneway"]


@declare_level("measured", valid="calibration='any'")
def f_oneway(
    *samples: Any,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    bounds: Bounds,
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    equal_var: bool = True,
    calibration: Calibration = "classical",
    n_bootstrap: int = 19_999,
    adjacency: PublicGroups | None = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Test privately whether several groups have the same mean (one-way analysis of variance).

    Parameters
    ----------
    *samples : array, series or table of one column
        Two groups or more, or one frame that ``group`` splits; their sizes are public.
    group, groups, columns
        How a frame is split and which column is compared, as in :func:`privatest.mmd_test`.
    bounds : pair or Schema
        Public bounds; values outside are clipped. Tighter bounds need less noise.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision; the simultaneous intervals have level 1 - alpha.
    equal_var : bool
        Whether to assume equal variances, and pool them; False is Welch's test, which weighs each
        mean by its own.
    calibration : {"classical", "any"}
        As in :func:`privatest.ttest_ind`; "any" compares all pairs, by Bonferroni.
    n_bootstrap, rng, noise
        As in :func:`privatest.hotelling_test`.
    adjacency : {"one", "both"}, optional
        What is hidden: one record within its group, or one in each group; each of k groups then
        gets a k-th of the budget. By default "one"; for a frame it must be passed, or be what
        the schema says.

    Returns
    -------
    Outcome
        With the private F and, in ``estimates``, the private ``mean`` of each group with
        simultaneous intervals ``lower`` to ``upper``; both are cut to the bounds.

    Notes
    -----
    F weighs each mean by its variance with the noise on it. Without noise it is SciPy's F, pooled
    or Welch's; for two groups it is the square of t.

    **Sensitivity** With the bounds mapped to [-1, 1], a replaced record moves the mean of its
    group by at most 2/n and the mean square by 1/n, times the rows per person. Proof:
    docs/proofs/means.md.

    **Privacy** Mean and mean square of each group are released at (epsilon, delta); everything
    else is computed from them. A record is in one group, so each gets the whole budget. The level
    of ``calibration="classical"`` was measured, that of "any" is proved.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> groups = [rng.uniform(shift, 8 + shift, size=1000) for shift in (0, 0.5, 2)]
    >>> f_oneway(*groups, bounds=(0, 10), epsilon=1, rng=0).reject
    True
    """
    budget = Budget(epsilon, delta)
    options = checked_calibration(alpha, calibration, rng) | checked_bootstrap(
        alpha, n_bootstrap, rng
    )
    if not isinstance(equal_var, bool):
        reject("equal_var", "True or False", equal_var)
    layout = resolve_samples(
        samples,
        bounds,
        adjacency,
        several=True,
        public_groups=BY_SIZES,
        group=group,
        groups=groups,
        columns=columns,
    )
    chosen = layout.adjacency
    if layout.count < 2:
        raise ParameterError("f_oneway must have two samples or more.")
    each = sample_budget(budget, chosen, groups=layout.count)
    source = noise_source(noise)
    data, described = layout.read(samples)
    found_groups = numeric_groups(data, described, chosen)
    check_one_column(found_groups[0], "each sample")
    sizes = [len(sample) for sample in found_groups]
    if min(sizes) < 2:
        raise DataError("each sample must have at least 2 rows.")
    freedom = sum(sizes) - len(sizes)
    weights = tuple((size - 1) / freedom for size in sizes)
    found_in = release_rows(found_groups, each, source)
    released = GroupMeans(found_in, weights, float(min(sizes)), equal_var)
    found = infer_groups(released, **options)
    rest = {name: value for name, value in options.items() if name != "alpha"}
    intervals = GroupIntervals(released, found_groups[0].box, **rest)
    low, high = intervals.ends(found)
    shown = {
        "group_names": group_names(len(data), bounds, adjacency, group, groups),
        "equal_var": equal_var,
        "calibration": options["calibration"],
    }
    if options["calibration"] == "classical":
        shown["n_bootstrap"] = n_bootstrap
    null = "all groups have the same mean"
    named = calibrated("one-way analysis of variance", options["calibration"])
    return Outcome(
        reject=found.pvalue <= options["alpha"],
        alpha=options["alpha"],
        spent=budget,
        simulated=source.simulated,
        pvalue=found.pvalue,
        statistic=found.statistic,
        estimated="mean",
        estimates={
            "mean": in_units(found_groups[0].box, np.clip(released.means, -1.0, 1.0)),
            "lower": low,
            "upper": high,
        },
        intervals=intervals,
        **group_facts(found_groups, chosen, named["method"], null, shown) | named,
    )
