"""Integral probability metrics: sup over functions f of |mean of f over x - mean over y|.

Kim and Schrab (2023), example 1: replacing a record moves the metric by at most the diameter
of the domain, as the functions see it, over min(n, m). Two forms cover all of them:

- a few features and a norm (means, total variation, Kolmogorov on public thresholds);
- distribution functions on a line (Kolmogorov, Kuiper, Wasserstein), exact, from the sorted
  values.

Proof: docs/proofs/integral-probability-metrics.md.
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
from privatest.data.domain import Domain
from privatest.kernels.features import Unprojected
from privatest.kernels.kernels import UNIT_ROUNDOFF
from privatest.statistics.bins import parallel
from privatest.statistics.cells import LineKind, from_extremes

__all__ = ["Distance", "LineMetric", "LinearMetric", "ipm", "metric", "sliced_diameter"]

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

Floats = NDArray[np.float64]
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

    def values(
        self, rows: Floats, weights: WeightsInOrder, count: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
