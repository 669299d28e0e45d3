"""Two-sample tests by an integral probability metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Unpack, overload

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Adjacency, Amount, Budget
from privatest.core.results import Decision, Outcome, declare_level
from privatest.core.validation import Rng, integer_at_least, number, one_of, public_generator
from privatest.data.encoding import TwoSamples, encode_samples
from privatest.data.reading import GroupOptions, resolve_samples
from privatest.data.schema import Category, CheckedGrid, Grid, cut_points, read_grid
from privatest.mechanisms.permutation import RELEASES, Release, permutation_result
from privatest.methods.descriptor import SMOOTHED, Method, Offered, Option
from privatest.methods.two_groups import (
    NULL_HYPOTHESIS,
    Relabel,
    check_relabel,
    check_sizes,
    labelled_rows,
    public_sizes,
    shown_sizes,
    swaps_labels,
)
from privatest.numerics.distances import (
    DISTANCES,
    EXACT_ROWS,
    MEAN_NORMS,
    CellMetric,
    Distance,
    Floats,
    LinearMetric,
    LineMetric,
    MeanNorm,
    cell_metric,
    metric,
    permuted_distance,
)
from privatest.numerics.permutation import (
    BinRelabelling,
    BlockPermutation,
    Statistics,
    bin_layout,
    block_permutation,
    mmd_sensitivity,
    pair_swaps,
    pair_swaps_sensitivity,
    permuted_cells,
    permuted_features,
    private_groups_sensitivity,
    streamed_cells,
    streamed_features,
)

_CELL_BINS = 2048  # most bins whose cells are counted: a table of bins and cells is kept

Metric = LinearMetric | LineMetric | CellMetric
_MAX_BINS = 16_384


class IpmOptions(GroupOptions, total=False):
    """What :func:`ipm_test` takes besides data, distance, bounds, budget and ``release``."""

    norm: MeanNorm
    delta: Amount
    alpha: float
    adjacency: Adjacency | None
    relabel: Relabel
    grid: Grid
    n_permutations: int
    rng: Rng
    noise: NoiseSource | None


@overload
def ipm_test(
    x: Any,
    y: Any = ...,
    *,
    distance: Distance,
    bounds: Any,
    epsilon: Amount,
    release: Literal["pvalue"] = ...,
    **options: Unpack[IpmOptions],
) -> Outcome: ...
@overload
def ipm_test(
    x: Any,
    y: Any = ...,
    *,
    distance: Distance,
    bounds: Any,
    epsilon: Amount,
    release: Release,
    **options: Unpack[IpmOptions],
) -> Decision: ...
@declare_level("valid")
def ipm_test(
    x: Any,
    y: Any = None,
    *,
    group: str | None = None,
    groups: Sequence[Category] | None = None,
    columns: str | Sequence[str] | None = None,
    distance: Distance,
    bounds: Any,
    epsilon: Amount,
    norm: Offered[MeanNorm] = "l2",
    delta: Amount = 0.0,
    alpha: float = 0.05,
    release: Offered[Release] = "pvalue",
    adjacency: Adjacency | None = None,
    relabel: Relabel = "auto",
    grid: Offered[Grid] = None,
    n_permutations: Annotated[int, Option("permutations")] = 999,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Test privately whether two samples differ, by a distance that is easy to explain.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        The two samples; a row is a record, a 1-D array is one column.
    group, groups, columns
        Where x is one frame, how it is split and compared: as in :func:`privatest.mmd_test`.
    distance : {"mean", "wasserstein", "total-variation", "kolmogorov"}
        Distance of means; Wasserstein-1 (exact for one column, sliced over fixed public
        directions for several); total variation of categories; largest difference of
        distribution functions (exact for one column, over fixed public thresholds for several).
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema
        Public bounds of the columns. Distances are in their units: each column is mapped to
        [0, 1]. Data outside is clipped.
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    norm : {"l1", "l2", "linf"}
        Norm of the difference of means.
    alpha : float
        Level of the decision.
    release : {"pvalue", "decision"}
        A p-value with its decision, or the decision alone with less noise.
    adjacency : {"one", "both", "row"}, optional
        What is hidden, as in :func:`mmd_test`.
    relabel : {"auto", "permute", "swap"}
        How private groups are relabelled, as in :func:`mmd_test`.
    grid : None, int, array or "exact"
        For "wasserstein", and for "kolmogorov" of one column. None measures at all values for up
        to 16,384 rows, and beyond at cells of the bounds: 4096 for Kolmogorov, 1024 for
        Wasserstein, 256 on each of several lines. A number of equal cells, or for Kolmogorov
        cut points in units of the data, are used for any number of rows; "exact" never uses
        cells, and takes time for rows times permutations.
    n_permutations : int
        Number of random permutations.
    rng : None, int or Generator
        Public randomness, for permutations.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome or Decision
        An Outcome without a statistic for ``release="pvalue"``, else a Decision.

    Notes
    -----
    **Sensitivity** D/min(n, m), D the diameter of the unit box as the distance sees it: d^(1/p)
    for means in the p-norm, 1 for one column, for categories and for thresholds; if sliced, the
    largest mean distance of two corners of the box along the directions. "both" and "row" as
    for MMD, with D for c. Cells have functions of the same kind, and the same D.
    Proof: docs/proofs/integral-probability-metrics.md and docs/proofs/line-cells.md.

    **Privacy** Only the p-value (a multiple of 1/10,000) or the decision is released, at
    (epsilon, delta). Proof: docs/proofs/smoothed-permutation-test.md.

    References
    ----------
    Kim and Schrab (2023), example 1.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.uniform(size=2000), rng.beta(2, 1, size=2000)
    >>> pt.ipm_test(x, y, distance="wasserstein", bounds=(0, 1), epsilon=1).reject
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("distance", distance, DISTANCES)
    one_of("norm", norm, MEAN_NORMS)
    one_of("release", release, RELEASES)
    layout = resolve_samples((x, y), bounds, adjacency, group=group, groups=groups, columns=columns)
    adjacency = layout.adjacency
    check_relabel(relabel, adjacency)
    n_permutations = integer_at_least("n_permutations", n_permutations, 1)
    checked = read_grid(grid)
    generator, source = public_generator(rng), noise_source(noise)
    data, bounds = layout.read((x, y))
    samples = encode_samples(data[0], data[1], bounds, adjacency=adjacency)
    check_sizes(samples, adjacency)
    chosen = _on_cells(metric(distance, samples.domain, norm), samples, checked)
    n, m = public_sizes(samples, adjacency)
    parameters: dict[str, Any] = {"distance": distance, "n_permutations": n_permutations}
    if isinstance(chosen, CellMetric):
        parameters["grid"] = chosen.cells
    if distance == "mean":
        parameters["norm"] = norm
    if adjacency == "row":
        swap = swaps_labels(relabel, n + m, samples.rows_per_person, budget.pure_epsilon, release)
        parameters["relabel"] = "swap" if swap else "permute"
        bound = pair_swaps_sensitivity if swap else private_groups_sensitivity
        sensitivity = bound(chosen.diameter, n + m)
        values, errors = _private_groups(
            samples, chosen, n_permutations, generator, source, swap=swap
        )
    else:
        sensitivity = mmd_sensitivity(chosen.diameter, n, m, adjacency)
        values, errors = _public_groups(samples, chosen, n_permutations, generator, source)
    return permutation_result(
        values[0],
        sensitivity=(sensitivity * samples.rows_per_person).widened(float(errors[0])),
        budget=budget,
        alpha=alpha,
        release=release,
        noise=source,
        facts={
            "adjacency": adjacency,
            "method_id": f"ipm_test/{distance}",
            "method": f"two-sample test by {_name(distance, norm, samples.domain.dimension)}",
            "null_hypothesis": NULL_HYPOTHESIS,
            "sizes": shown_sizes(samples, adjacency),
            "parameters": parameters,
            "rows_per_person": samples.rows_per_person,
        },
    )


def _name(distance: Distance, norm: MeanNorm, dimension: int) -> str:
    names = {
        "mean": f"difference of means ({norm})",
        "wasserstein": "Wasserstein distance" if dimension == 1 else "sliced Wasserstein distance",
        "total-variation": "total variation",
        "kolmogorov": "Kolmogorov distance",
    }
    return names[distance]


def _on_cells(chosen: LinearMetric | LineMetric, samples: TwoSamples, grid: CheckedGrid) -> Metric:
    """Measure a distance on lines at cells, if they are asked for or rows are many."""
    if isinstance(chosen, LinearMetric):
        if grid is not None:
            raise ParameterError(
                "grid is for distance='wasserstein', and for 'kolmogorov' of one column."
            )
        return chosen
    rows = len(samples.x) + len(samples.y)
    if isinstance(grid, str) or (grid is None and rows <= EXACT_ROWS):
        return chosen
    if isinstance(grid, np.ndarray):
        if chosen.kind == "wasserstein":
            raise ParameterError("grid must be a number of cells for distance='wasserstein'.")
        lower, upper = float(samples.x.box.lower[0]), float(samples.x.box.upper[0])
        inside = (cut_points(grid, lower, upper) - lower) / (upper - lower)
        return cell_metric(chosen, np.unique(inside), None)
    return cell_metric(chosen, None, grid)


def _public_groups(
    samples: TwoSamples,
    distance: Metric,
    n_permutations: int,
    rng: np.random.Generator,
    noise: NoiseSource,
) -> Statistics:
    n, m = map(len, samples)
    most = _CELL_BINS if isinstance(distance, CellMetric) else _MAX_BINS
    layout = bin_layout(n, m, None, most)
    permutation = layout.permute(n_permutations, rng)
    statistics = _one_pass(permutation, samples, distance, noise)
    if statistics is None:
        orders = samples.secret_orders(noise, paired=False)
        rows = layout.arrange(samples.x.rows, samples.y.rows, *orders)
        statistics = _held(permutation, rows, None, distance)
    return statistics


def _private_groups(
    samples: TwoSamples,
    distance: Metric,
    n_permutations: int,
    rng: np.random.Generator,
    noise: NoiseSource,
    *,
    swap: bool,
) -> Statistics:
    total = len(samples.x) + len(samples.y)
    relabelling: BinRelabelling | BlockPermutation
    if swap:
        relabelling = pair_swaps(total, n_permutations, rng)
        # blocks of one pass follow from how many rows each group has, and time would tell
        if not noise.constant_time:
            statistics = _one_pass(relabelling, samples, distance, noise)
            if statistics is not None:
                return statistics
    else:
        relabelling = block_permutation(total, n_permutations, rng)
    rows, labels = labelled_rows(samples.x.rows, samples.y.rows, noise)
    return _held(relabelling, rows, labels, distance)


def _one_pass(
    relabelling: BinRelabelling, samples: TwoSamples, distance: Metric, noise: NoiseSource
) -> Statistics | None:
    """Return statistics of rows that may be anywhere; None where all rows have to be held."""
    if isinstance(distance, LinearMetric):
        return streamed_features(relabelling, samples, distance, noise, pairs=False)[0]
    if isinstance(distance, CellMetric) and distance.is_line:
        return streamed_cells(relabelling, samples, distance.line, noise)
    return None


def _held(
    relabelling: BinRelabelling | BlockPermutation,
    rows: Floats,
    labels: Floats | None,
    distance: Metric,
) -> Statistics:
    if isinstance(distance, LinearMetric):
        return permuted_features(relabelling, rows, labels, distance)
    if isinstance(distance, CellMetric):
        return permuted_cells(relabelling, distance.lines(rows), labels)
    return permuted_distance(relabelling, rows, labels, distance)


DESCRIPTORS = (
    Method(
        name="mean",
        question="two-sample",
        function=ipm_test,
        preset={"distance": "mean"},
        without=("grid",),
        sentence=f"We compared the samples by the difference of their means, {SMOOTHED}",
        papers=("kim2023",),
    ),
    Method(
        name="wasserstein",
        question="two-sample",
        function=ipm_test,
        preset={"distance": "wasserstein"},
        without=("norm",),
        sentence=f"We compared the samples by the Wasserstein distance, {SMOOTHED}",
        papers=("kim2023",),
    ),
    Method(
        name="tv",
        question="two-sample",
        function=ipm_test,
        about="categories",
        preset={"distance": "total-variation"},
        without=("grid", "norm"),
        sentence=f"We compared the samples by the total variation distance, {SMOOTHED}",
        papers=("kim2023",),
    ),
    Method(
        name="kolmogorov",
        question="two-sample",
        function=ipm_test,
        preset={"distance": "kolmogorov"},
        without=("norm",),
        sentence=f"We compared the samples by the Kolmogorov distance, {SMOOTHED}",
        papers=("kim2023",),
    ),
)
