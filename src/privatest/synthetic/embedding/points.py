"""Public points: spread over a schema's box, or given by the user."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.data.schema import Schema

__all__ = [
    "box_points",
    "check_points",
    "check_size",
    "snapping",
]

_MOST_TRIED = 8  # times the number wanted, where integer rows repeat


def box_points(schema: Schema, count: int) -> NDArray[np.float64]:
    """Return at most ``count`` different rows of the schema, spread evenly over its box.

    A low-discrepancy sequence; integers are integers and categories categories. Where the
    schema has fewer rows there are fewer points.
    """
    domain, tried = schema.domain, count
    while True:
        points = _valid(domain.points(tried), schema)
        _, first = np.unique(points, axis=0, return_index=True)
        if len(first) >= count or tried >= _MOST_TRIED * count:
            return points[np.sort(first)[:count]]
        tried *= 2


def _valid(points: NDArray[np.float64], schema: Schema) -> NDArray[np.float64]:
    """Move the entries of integer columns to the nearest integers, each with its share."""
    for index, width in _integer_widths(schema).items():
        points[:, index] = np.floor(points[:, index] * (width + 1)).clip(0, width) / width
    return points


def _integer_widths(schema: Schema | None) -> dict[int, float]:
    """Return the ranges of integer columns, by their positions."""
    if schema is None:
        return {}
    box, numeric = schema.box, schema.domain.numeric
    return {index: float(box.width[index]) for index in numeric if box.whole[index]}


def snapping(schema: Schema | None) -> Callable[[NDArray[np.float64]], NDArray[np.float64]] | None:
    """Return what moves encoded points to the nearest rows of the schema; None for nothing."""
    widths = _integer_widths(schema)

    def snap(points: NDArray[np.float64]) -> NDArray[np.float64]:
        points = points.copy()
        for index, width in widths.items():
            points[:, index] = np.rint(points[:, index] * width) / width
        return points

    return snap if widths else None


def check_points(points: NDArray[np.float64], n: int) -> None:
    """Refuse unusable public points."""
    if len(points) < 1:
        raise ParameterError("public_points must have at least one row.")
    check_size(len(points), n)
    if len(np.unique(points, axis=0)) < len(points):
        raise ParameterError(
            "public_points must be distinct; some rows are equal after clipping to the bounds. "
            "Remove the duplicates."
        )


def check_size(count: int, n: int) -> None:
    """Refuse more points than rows."""
    if count > n:
        raise ParameterError(
            "n_points",
            f"must be at most the number of rows of x, {n}: each public point costs noise, and "
            "more points than rows carry no more information",
        )
