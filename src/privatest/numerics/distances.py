"""Distances of two samples: norms of mean features, and distribution functions on lines.

Integral probability metrics are suprema over functions f of |mean of f over x - mean over y|; Kim
and Schrab (2023), example 1. Replacing a record moves one by at most the diameter of the domain, as
the functions see it, over min(n, m). A few features and a norm give means, total variation and
Kolmogorov's distance at public thresholds; sorted values, or cells of lines where rows are many,
give Kolmogorov's, Kuiper's and Wasserstein's distances. Proofs:
docs/proofs/integral-probability-metrics.md and docs/proofs/line-cells.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.privacy import PermutationSensitivity
from privatest.data.schema import Domain, equal_cuts
from privatest.numerics.cells import (
    FINE_STEPS,
    LineKind,
    PlacedLine,
    area_cells,
    cut_cells,
    from_extremes,
)
from privatest.numerics.features import Unprojected
from privatest.numerics.kernels import UNIT_ROUNDOFF
from privatest.numerics.permutation import (
    BinRelabelling,
    BlockPermutation,
    PairSwaps,
    Statistics,
    parallel,
)

Floats = NDArray[np.float64]
Distance = Literal["mean", "wasserstein", "total-variation", "kolmogorov"]
DISTANCES: tuple[str, ...] = get_args(Distance)
MeanNorm = Literal["l1", "l2", "linf"]
MEAN_NORMS: tuple[str, ...] = get_args(MeanNorm)

_MOST_CELLS = 4096
_THRESHOLDS = 512  # public thresholds of Kolmogorov's distance in several dimensions
_DIRECTIONS = 32  # public directions of the sliced Wasserstein distance
_ENUMERATED = 16  # columns up to which all corners of the box are tried
_CORNERS_HELD = 1 << 14  # corners tried at a time
_WEIGHTS_HELD = 1 << 22  # row weights expanded at a time

WeightsInOrder = Callable[[NDArray[np.intp]], Callable[[slice], Floats]]
"""Given an order of rows, a function that gives the row weights of a slice of weightings."""


@dataclass(frozen=True, slots=True)
class LinearMetric(Unprojected):
    """A norm of the difference of mean features; it serves as its own feature map."""

    features: Callable[[Floats], Floats]
    width: int
    norm: Callable[[Floats], Floats]
    diameter: float

    @property
    def spreads(self) -> tuple[float, ...]:
        """Largest distance, in the norm, between the features of two rows."""
        return (self.diameter,)

    @property
    def roundings(self) -> tuple[float, ...]:
        """Features are exact or rounded once."""
        return (2 * UNIT_ROUNDOFF,)

    @property
    def amplifications(self) -> tuple[float, ...]:
        """An error in each of the features, in the largest of the norms."""
        return (float(self.width),)

    @property
    def raw_width(self) -> int:
        """Number of features."""
        return self.width

    def raw(self, x: Floats) -> Iterator[Floats]:
        """Yield the features."""
        yield self.features(x)

    @property
    def blocks(self) -> int:
        """One."""
        return 1

    def measure(self, index: int, sums: Floats) -> Floats:
        """Return the norm."""
        del index
        return self.norm(sums)[None, :]


@dataclass(frozen=True, slots=True)
class LineMetric:
    """A distance of distribution functions on one or several lines."""

    directions: Floats  # columns; rows are projected on each
    kind: LineKind
    diameter: float

    def values(self, rows: Floats, weights: WeightsInOrder, count: int) -> tuple[Floats, Floats]:
        """Return the metric for ``count`` weightings of the rows, and a bound on its error.

        Row weights are positive and negative and sum to 0. Time grows with rows times
        weightings, memory does not.
        """
        total = np.zeros(count)
        step = max(1, _WEIGHTS_HELD // len(rows))
        slices = [slice(start, min(start + step, count)) for start in range(0, count, step)]
        for column in self.directions.T:
            line = rows @ column
            order = np.argsort(line, kind="stable")
            gaps = np.diff(line[order])

            in_order = weights(order)

            def part(
                chosen: slice,
                in_order: Callable[[slice], Floats] = in_order,
                gaps: Floats = gaps,
            ) -> Floats:
                sums = np.cumsum(in_order(chosen), axis=1)[:, :-1]
                if self.kind == "wasserstein":
                    return np.asarray(np.abs(sums, out=sums) @ gaps)
                sums *= gaps > 0  # within ties there is no step
                top, bottom = sums.max(axis=1, initial=0), -sums.min(axis=1, initial=0)
                return from_extremes(self.kind, top, bottom)

            total += np.concatenate(list(parallel(part, slices, count * len(rows))))
        # of sums of weights over the line, of the area, and of the rows' places on the line, which
        # are as long as the box along a direction: longer than the diameter
        reach = float(np.abs(self.directions).sum(axis=0).mean())
        additions = 4.0 * (len(rows) + len(self.directions)) * UNIT_ROUNDOFF * (1 + reach)
        return total[None, :] / self.directions.shape[1], np.array([additions])


def metric(distance: Distance, domain: Domain, norm: MeanNorm = "l2") -> LinearMetric | LineMetric:
    """Build a metric on a public domain, with its diameter.

    Parameters
    ----------
    distance : {"mean", "wasserstein", "total-variation", "kolmogorov"}
        Which one.
    domain : Domain
        Public; bounded.
    norm : {"l1", "l2", "linf"}
        Of the difference of means.
    """
    if not domain.bounded:
        raise ParameterError("bounds must be given: the distance's sensitivity depends on them.")
    if distance == "total-variation":
        return _total_variation(domain)
    if domain.categorical:
        raise ParameterError(
            f"distance={distance!r} needs numeric columns only; use 'total-variation' for "
            "categories or mmd_test for mixed rows."
        )
    if distance == "mean":
        return _mean(domain.dimension, norm)
    if distance == "kolmogorov" and domain.dimension > 1:
        return _kolmogorov_thresholds(domain)
    if domain.dimension == 1:
        return LineMetric(np.ones((1, 1)), distance, 1.0)
    return _sliced_wasserstein(domain.dimension)


@lru_cache(maxsize=16)
def _sliced_wasserstein(dimension: int) -> LineMetric:
    directions = np.random.default_rng(0).normal(size=(dimension, _DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    directions.setflags(write=False)
    return LineMetric(directions, "wasserstein", sliced_diameter(directions))


def sliced_diameter(directions: Floats) -> float:
    """Bound mean |direction · (z - z')| over rows z, z' of the unit box; directions are columns.

    It is convex in z - z', so it is largest where every entry is 1 or -1. All such corners are
    tried for up to 16 columns; beyond, the root mean square along the leading eigenvector
    bounds it.
    """
    dimension, count = directions.shape
    if dimension > _ENUMERATED:
        largest = float(np.linalg.eigvalsh(directions @ directions.T / count)[-1])
        reach = float(np.abs(directions).sum(axis=0).mean())
        return min(math.sqrt(dimension * largest), reach) * (1 + 1e-12)
    longest, columns = 0.0, np.arange(dimension)
    corners = 1 << (dimension - 1)  # the first entry may be 1: opposite corners are equally far
    for start in range(0, corners, _CORNERS_HELD):
        codes = 2 * np.arange(start, min(start + _CORNERS_HELD, corners))
        signs = 1.0 - 2.0 * ((codes[:, None] >> columns) & 1)
        longest = max(longest, float(np.abs(signs @ directions).mean(axis=1).max()))
    return longest * (1 + 1e-12)


def _mean(dimension: int, norm: MeanNorm) -> LinearMetric:
    orders = {"l1": 1.0, "l2": 2.0, "linf": math.inf}
    order = orders[norm]
    diameter = 1.0 if norm == "linf" else dimension ** (1 / order)
    return LinearMetric(
        features=_centred,
        width=dimension,
        norm=partial(_norm, order),
        diameter=diameter * (1 + 1e-15),
    )


def _norm(order: float, sums: Floats) -> Floats:
    return np.asarray(np.linalg.norm(sums, ord=order, axis=1))


def _centred(rows: Floats) -> Floats:
    return rows - 0.5


def _total_variation(domain: Domain) -> LinearMetric:
    if domain.numeric:
        raise ParameterError("distance='total-variation' needs categorical columns only.")
    cells = math.prod(domain.levels)
    if cells > _MOST_CELLS:
        raise ParameterError(
            f"distance='total-variation' needs at most {_MOST_CELLS} combinations of categories; "
            f"these columns have {cells}."
        )
    return LinearMetric(partial(_one_hot, domain.levels), cells, _half_l1, 1.0)


def _one_hot(levels: tuple[int, ...], rows: Floats) -> Floats:
    codes = np.ravel_multi_index(tuple(rows.T.astype(np.intp)), levels)
    found = np.zeros((len(rows), math.prod(levels)))
    found[np.arange(len(rows)), codes] = 1.0
    return found


def _half_l1(sums: Floats) -> Floats:
    halves: Floats = 0.5 * np.abs(sums).sum(axis=1)
    return halves


def _kolmogorov_thresholds(domain: Domain) -> LinearMetric:
    features = partial(_below, domain.points(_THRESHOLDS))
    return LinearMetric(features, _THRESHOLDS, _largest, 1.0)


def _below(thresholds: Floats, rows: Floats) -> Floats:
    below = np.ones((len(rows), len(thresholds)), dtype=np.bool_)
    for own, column in zip(thresholds.T, rows.T, strict=True):
        below &= np.less_equal.outer(column, own)
    return below.astype(np.float64)


def _largest(sums: Floats) -> Floats:
    found: Floats = np.abs(sums).max(axis=1)
    return found


def ipm(x: Floats, y: Floats, distance: LinearMetric | LineMetric) -> float:
    """Return the metric between two encoded samples; not private."""
    if isinstance(distance, LinearMetric):
        difference = distance.features(x).mean(axis=0) - distance.features(y).mean(axis=0)
        return float(distance.norm(difference[None, :])[0])
    weights = np.repeat([1 / len(x), -1 / len(y)], [len(x), len(y)])
    values, _ = distance.values(np.vstack([x, y]), lambda order: lambda _: weights[None, order], 1)
    return float(values[0, 0])


# Sorted walks: the sum of permuted weights over the rows in order of value.

_STEPS_HELD = 64  # of a walk, at a time: sums fit into a byte
_DOUBLING = (1, 2, 4, 8, 16, 32)
_MOST = np.int8(127)  # of a byte
_WEIGHTINGS = 512  # that walk at a time: they stay in the cache
_ROUNDED = np.array([4 * UNIT_ROUNDOFF])  # quotients of whole numbers


def permuted_distance(
    relabelling: BinRelabelling | BlockPermutation,
    rows: Floats,
    labels: Floats | None,
    metric: LineMetric,
) -> Statistics:
    """Return a distance from sorted values (1 × permutations), and a bound on its error."""
    if isinstance(relabelling, PairSwaps) and metric.kind != "wasserstein":  # one line
        assert labels is not None
        order = np.argsort(rows[:, 0], kind="stable")
        ends = np.append(np.diff(rows[order, 0]) > 0, False)  # within ties there is no step
        signs, bins = relabelling.signs(labels)[order], relabelling.bin_of_row[order]
        top, bottom = _walks(relabelling.bin_signs, signs, bins, ends)
        values = from_extremes(metric.kind, top / len(rows), bottom / len(rows))
        return values[None, :], _ROUNDED
    return metric.values(rows, partial(relabelling.row_weights, labels), relabelling.count)


def _walks(
    bin_signs: Floats, signs: Floats, bins: NDArray[np.intp], ends: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how far up and down each weighting's sum over sorted rows gets, at ``ends``.

    Steps are -1, 0 or 1, so that sums over few rows fit into a byte.
    """
    own, count, total = signs.astype(np.int8), len(bin_signs), len(signs)

    def part(chosen: slice) -> NDArray[np.int64]:
        turns = np.ascontiguousarray(bin_signs[chosen].T.astype(np.int8))  # bins × weightings
        base, top, bottom = np.zeros((3, turns.shape[1]), dtype=np.int64)
        for start in range(0, total, _STEPS_HELD):
            rows = slice(start, start + _STEPS_HELD)
            sums = turns[bins[rows]] * own[rows, None]
            for width in _DOUBLING:
                sums[width:] += sums[:-width].copy()
            # as much work whatever is tied: rows within ties are put below, or above, all others
            here = ends[rows]
            out_of_play = (total + 128) * (not here.any())  # where all are within ties
            peaks = np.minimum(sums, np.where(here, _MOST, -_MOST)[:, None]).max(axis=0)
            dips = np.maximum(sums, np.where(here, -_MOST, _MOST)[:, None]).min(axis=0)
            np.maximum(top, base + peaks - out_of_play, out=top)
            np.minimum(bottom, base + dips + out_of_play, out=bottom)
            base += sums[-1]
        return np.stack([top, bottom])

    slices = [slice(start, start + _WEIGHTINGS) for start in range(0, count, _WEIGHTINGS)]
    found = np.concatenate(list(parallel(part, slices, count * total)), axis=1)
    return found[0], -found[1]


# Distances on lines for many rows: cells instead of sorted values. A permutation then costs a sum
# over cells and not over rows. Which of the two is used follows from public numbers.

EXACT_ROWS = 1 << 14  # up to so many rows sorted values are summed for each permutation
RANK_CELLS = 1024
MOST_CELLS_CHOSEN = 4096
_CELLS = {"kolmogorov": MOST_CELLS_CHOSEN, "wasserstein": 1024}
_SLICED_CELLS = 256  # for each direction


def rank_cells_sensitivity(kind: LineKind, total: int) -> PermutationSensitivity:
    """How far T of private groups moves if it is measured at ranks; labels are permuted.

    Notes
    -----
    **Sensitivity** A replaced value exchanges at most one row of those below a cut point for
    another, and moves the sum of centred labels there by at most 1; a replaced label by less than
    1. Observed together still 1, but 2 between two cut points ("kuiper"). Permuted 2.
    Proof: docs/proofs/line-cells.md.
    """
    return PermutationSensitivity((2 if kind == "kuiper" else 1) / total, 2 / total)


@dataclass(frozen=True, slots=True, eq=False)
class CellMetric:
    """A distance on lines, from public cells.

    Attributes
    ----------
    metric : LineMetric
        The distance from sorted values that it stands for; not above it.
    cuts : ndarray or None
        Cut points of the unit interval; for "wasserstein" None.
    cells : int
        Number of cells of each line.
    """

    metric: LineMetric
    cuts: Floats | None
    cells: int

    @property
    def diameter(self) -> float:
        """That of the distance, and two of the steps in which several columns are rounded."""
        if self.metric.directions.shape[0] == 1:
            return self.metric.diameter
        reach = float(np.abs(self.metric.directions).sum(axis=0).mean())
        return self.metric.diameter + 2 * reach / (self.cells * FINE_STEPS)

    @property
    def is_line(self) -> bool:
        """Whether there is one line."""
        return len(self.metric.directions.T) == 1

    def line(self, rows: Floats) -> PlacedLine:
        """Place rows on the first line."""
        return next(self.lines(rows))

    def lines(self, rows: Floats) -> Iterator[PlacedLine]:
        """Place rows of the unit box on each line, one line at a time."""
        for direction in self.metric.directions.T:
            line = rows[:, 0] * direction[0]
            for column, weight in enumerate(direction[1:], 1):
                line += rows[:, column] * weight  # not a matrix product: each row on its own
            if self.cuts is not None:
                yield cut_cells(line, self.cuts, self.metric.kind)
            else:
                lower, upper = direction[direction < 0].sum(), direction[direction > 0].sum()
                yield area_cells(line, float(lower), float(upper), self.cells)


def cell_metric(metric: LineMetric, cuts: Floats | None, cells: int | None) -> CellMetric:
    """Choose cells for a distance on the unit box: the given ones, or a public number of them."""
    if metric.kind == "wasserstein":
        usual = _CELLS["wasserstein"] if metric.directions.shape[0] == 1 else _SLICED_CELLS
        return CellMetric(metric, None, cells or usual)
    if cuts is None:
        cuts = equal_cuts(0.0, 1.0, cells or _CELLS["kolmogorov"])
    return CellMetric(metric, cuts, len(cuts) + 1)
