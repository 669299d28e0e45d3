"""Data of a pilot, or public data, drawn again with replacement."""

from __future__ import annotations

import hashlib
import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import number, one_of
from privatest.data.bounds import schema_of
from privatest.data.schema import NumericColumn
from privatest.simulation.sampler import Sampler

__all__ = ["resample"]

Floats = NDArray[np.float64]


def resample(
    x: ArrayLike,
    y: ArrayLike | None = None,
    *,
    bounds: Any,
    effect: float = 0.0,
    question: str = "two-sample",
) -> Sampler:
    """Draw from rows that may be used freely: public data, or those of a pilot.

    Parameters
    ----------
    x : array
        Numbers, one row a person. It must not be the private data that the test is for: what is
        planned from it would depend on people, and nobody would have paid for that.
    y : array, optional
        The second group, or the other side of the same rows. Without it, the second group is
        drawn from ``x`` and shifted.
    bounds : (lower, upper), a pair for each column, or a pair of them for independence
        The public bounds.
    effect : float
        What is added to the second group, in the units of the data.
    question : {"two-sample", "paired", "independence"}
        For "paired" the two columns are of the same people: first minus second is the change.
    """
    one_of("question", question, ("two-sample", "paired", "independence"))
    effect = number("effect", effect)
    first = _rows("x", x)
    second = first if y is None else _rows("y", y)
    if question != "two-sample" and (y is None or len(first) != len(second)):
        raise ParameterError("y must have the rows of the same people as x.")
    sides = bounds if question == "independence" else (bounds, bounds)
    limits = (_limits(sides[0]), _limits(sides[1]))
    _check_effect(second + effect, limits[1])
    data = hashlib.sha256(first.tobytes() + second.tobytes()).hexdigest()[:16]
    return Sampler(
        "pilot",
        effect,
        question,
        bounds,
        partial(
            _again,
            first=first,
            second=second,
            effect=effect,
            paired=question != "two-sample",
            limits=limits,
        ),
        settings={"data": data, "bounds": repr(bounds)},
        columns=1 if first.ndim == 1 else first.shape[1],
        strength=abs(effect) if y is None else math.nan,
        noise_scale=math.nan,
        remake=partial(_remade, x=first, y=y, bounds=bounds, question=question),
    )


def _remade(effect: float, x: Any, y: Any, bounds: Any, question: str) -> Sampler:
    return resample(x, y, bounds=bounds, effect=effect, question=question)


def _rows(name: str, values: ArrayLike) -> Floats:
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim not in (1, 2) or len(rows) < 2 or not np.isfinite(rows).all():
        raise ParameterError(f"{name} must be at least two rows of finite numbers.")
    return rows


def _limits(bounds: Any) -> tuple[Floats, Floats]:
    schema = schema_of(bounds)
    columns = () if schema is None else schema.columns.values()
    pairs = [(c.lower, c.upper) for c in columns if isinstance(c, NumericColumn)]
    if not pairs:
        raise ParameterError("bounds must be given: a pair of numbers for each column, or one.")
    lower, upper = np.array(pairs).T
    return lower, upper


def _check_effect(second: Floats, limits: tuple[Floats, Floats]) -> None:
    rows = second.reshape(len(second), -1)
    if ((rows < limits[0]) | (rows > limits[1])).mean() > 0.02:
        raise ParameterError(
            "effect must keep values within the bounds: more than 2% would lie outside them."
        )


def _again(
    sizes: tuple[int, ...],
    rng: np.random.Generator,
    first: Floats,
    second: Floats,
    effect: float,
    paired: bool,
    limits: tuple[tuple[Floats, Floats], tuple[Floats, Floats]],
) -> tuple[Floats, Floats]:
    rows = rng.integers(len(first), size=sizes[0])
    others = rows if paired else rng.integers(len(second), size=sizes[1])
    x, y = first[rows], second[others] + effect
    return np.clip(x, *limits[0]), np.clip(y, *limits[1])
