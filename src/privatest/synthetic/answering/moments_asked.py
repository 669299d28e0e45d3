"""Correlations and regressions from a release: smooth functions of means of products.

They move with the noise as the means of their influence functions do. Where a source knows
functions of two columns only, that mean is put together from those of the products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.synthetic.answering.asking import (
    Columns,
    Function,
    Question,
    Source,
    estimates_of,
    flat,
    nothing,
)
from privatest.synthetic.answering.estimates import Estimate
from privatest.synthetic.answering.functionals import Found, honest_error

__all__ = ["correlation", "regression"]

_SPREAD = "the privacy noise hides how widely these columns vary"
_FEW = 4.0  # a size must be this many of its errors to divide by it

Floats = NDArray[np.float64]


def correlation(source: Source, pair: tuple[Function, Function], asked: Question) -> Estimate:
    """Estimate the correlation of two functions of a row."""
    # about their centres: then what is not known of means hardly matters
    pair = (_about_centre(source, pair[0], asked), _about_centre(source, pair[1], asked))
    powers = ((), (0,), (1,), (0, 0), (1, 1), (0, 1))
    moments = [_product([pair[i] for i in power], asked.where) for power in powers]
    found = source.means(moments, asked.marks)
    if np.isinf(found.errors).any():
        return nothing(math.nan, source.unmeasured, (-1.0, 1.0))
    share, errors = float(found.values[0]), found.errors / max(found.values[0], 1e-12)
    m = found.values / max(share, 1e-12)
    variances = m[3:5] - m[1:3] ** 2
    unsure = np.hypot(errors[3:5], 2 * m[1:3] * errors[1:3])
    if share <= _FEW * found.errors[0] or not (variances > 0).all():
        return nothing(float(_plain_correlation(found)[0]), _SPREAD, (-1.0, 1.0))
    value = float(np.clip((m[5] - m[1] * m[2]) / math.sqrt(variances.prod()), -1, 1))
    if source.additive and (unsure > variances / _FEW).any():
        return nothing(float(_plain_correlation(found)[0]), _SPREAD, (-1.0, 1.0))
    moved = _moved(source, moments, found, _slopes(m, variances, value) / share, asked)
    if not source.additive:
        spreads = _moved(source, moments, found, _variance_slopes(m, variances) / share, asked)
        if spreads.errors.max() > 1 / _FEW:
            return nothing(float(_plain_correlation(found)[0]), _SPREAD, (-1.0, 1.0))
    asked = Question(asked.function, n=asked.n, reach=(-1.0, 1.0))
    return estimates_of(source, moved, np.array([value]), _plain_correlation(found), asked)[0]


def _about_centre(source: Source, function: Function, asked: Question) -> Function:
    """Return a function less its mean over the rows, in units of its spread."""
    inside = np.ones(1) if asked.where is None else asked.where(source.columns)
    kept = source.weights * flat(inside, source.columns)
    kept = kept / max(float(kept.sum()), 1e-12)
    values = flat(function(source.columns), source.columns)
    centre = float(kept @ values)
    spread = math.sqrt(max(float(kept @ (values - centre) ** 2), 0.0))
    return _shifted(function, centre, spread if spread > 1e-9 * max(1.0, abs(centre)) else 1.0)


def _plain_correlation(found: Found) -> Floats:
    m = found.plain / max(float(found.plain[0]), 1e-12)
    size = math.sqrt(max(float((m[3:5] - m[1:3] ** 2).prod()), 1e-300))
    return np.array([min(max(float(m[5] - m[1] * m[2]) / size, -1.0), 1.0)])


def _slopes(m: Floats, variances: Floats, value: float) -> Floats:
    """Return the derivatives of a correlation by the moments 1, x, y, xx, yy, xy."""
    size = math.sqrt(variances.prod())
    slopes = np.zeros((6, 1))
    slopes[1:3, 0] = -m[[2, 1]] / size + value * m[1:3] / variances
    slopes[3:5, 0] = -value / (2 * variances)
    slopes[5, 0] = 1 / size
    slopes[0] = -(m @ slopes)
    return slopes


def _variance_slopes(m: Floats, variances: Floats) -> Floats:
    """Return the derivatives of the logarithms of both variances."""
    slopes = np.zeros((6, 2))
    for i in range(2):
        slopes[1 + i, i] = -2 * m[1 + i] / variances[i]
        slopes[3 + i, i] = 1 / variances[i]
    slopes[0] = -(m @ slopes)
    return slopes


def regression(
    source: Source,
    target: Function,
    predictors: Mapping[str, Function],
    asked: Question,
) -> dict[str, Estimate]:
    """Estimate the coefficients of a least-squares regression, the intercept first."""
    names = ["intercept", *predictors]
    k = len(names)
    parts, centre, scale = _standardised(source, predictors, asked)
    if source.additive and asked.marks is not None:  # squares turn at the centres
        own = asked.marks
        turns = {n: [*own.get(n, ()), at] for n, at in zip(names, centre, strict=True)}
        asked = replace(asked, marks={**own, **turns})
    pairs = [(i, j) for i in range(k) for j in range(i, k)]
    moments = [_product([parts[i], parts[j]], asked.where) for i, j in pairs]
    moments += [_product([part, target], asked.where) for part in parts]
    found = source.means(moments, asked.marks)
    if np.isinf(found.errors).any():
        return {name: nothing(math.nan, source.unmeasured, None) for name in names}
    back = np.diag(1 / scale)  # to the columns' own units
    back[0, 1:] = -centre[1:] / scale[1:]
    square, unsure, rows = (
        _symmetric(k, pairs, each) for each in (found.values, found.errors, found.plain)
    )
    near = back @ np.linalg.lstsq(rows, found.plain[len(pairs) :])[0]
    if np.linalg.eigvalsh(square)[0] <= _FEW / 2 * np.linalg.norm(unsure, 2):
        parts_of = zip(names, near, strict=True)
        return {name: nothing(float(value), _SPREAD, None) for name, value in parts_of}
    inverse = np.linalg.inv(square)
    slopes = inverse @ found.values[len(pairs) :]
    turned = back @ inverse
    weights = np.zeros((len(moments), k))
    for place, (i, j) in enumerate(pairs):
        moving = turned[:, i] * slopes[j] + (turned[:, j] * slopes[i] if i != j else 0.0)
        weights[place] = -moving
    weights[len(pairs) :] = turned.T
    moved = _moved(source, moments, found, weights, asked)
    asked = Question(asked.function, n=asked.n)
    estimates = estimates_of(source, moved, back @ slopes, near, asked)
    return dict(zip(names, estimates, strict=True))


def _symmetric(k: int, pairs: Sequence[tuple[int, int]], values: Floats) -> Floats:
    matrix = np.zeros((k, k))
    for (i, j), value in zip(pairs, values, strict=False):
        matrix[i, j] = matrix[j, i] = value
    return matrix


def _standardised(
    source: Source, predictors: Mapping[str, Function], asked: Question
) -> tuple[list[Function], Floats, Floats]:
    """Return 1 and the predictors about their centres, in units of their spreads."""
    columns = source.columns
    inside = np.ones(1) if asked.where is None else asked.where(columns)
    kept = source.weights * flat(inside, columns)
    kept = kept / max(float(kept.sum()), 1e-12)
    centre, scale = np.zeros(len(predictors) + 1), np.ones(len(predictors) + 1)
    parts: list[Function] = [lambda columns: flat(1.0, columns)]
    for place, (name, function) in enumerate(predictors.items(), start=1):
        values = flat(function(columns), columns)
        centre[place] = kept @ values
        scale[place] = math.sqrt(max(float(kept @ (values - centre[place]) ** 2), 0.0))
        if scale[place] <= 1e-9 * max(1.0, abs(centre[place])):
            raise ParameterError(f"{name} must take at least two values in the release.")
        parts.append(_shifted(function, centre[place], scale[place]))
    return parts, centre, scale


def _shifted(function: Function, centre: float, scale: float) -> Function:
    return lambda columns: (flat(function(columns), columns) - centre) / scale


def _product(parts: Sequence[Function], where: Function | None) -> Function:
    """Return the product of some functions, 0 outside of a condition."""
    every = [*parts] if where is None else [*parts, where]

    def product(columns: Columns) -> Floats:
        found = flat(1.0, columns)
        for part in every:
            found = found * flat(part(columns), columns)
        return found

    return product


def _moved(
    source: Source, moments: Sequence[Function], found: Found, weights: Floats, asked: Question
) -> Found:
    """Return how combinations of moments (moments × combinations) move with the noise."""

    def influence(columns: Columns) -> Floats:
        values = np.column_stack([flat(each(columns), columns) for each in moments])
        combined: Floats = values @ weights
        return combined

    if not source.additive:
        return source.means(influence, asked.marks)
    at_rows = influence(source.columns)
    spreads = np.sqrt(source.weights @ (at_rows - source.weights @ at_rows) ** 2)
    directions = found.directions @ weights
    noise = np.sqrt(np.einsum("ij,ij->j", directions, directions))
    unseen = found.unseen @ np.abs(weights)
    errors = honest_error(noise, unseen)
    values, plain = found.values @ weights, found.plain @ weights
    return Found(values, errors, noise, unseen, directions, spreads, plain)
