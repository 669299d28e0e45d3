"""A function of the user's, called with care, and tried out on made-up data first."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.user_code import run_user_code
from privatest.custom.space import Rows, Space, typical

__all__ = [
    "TOLERANCE",
    "UserStatistic",
    "check_statistic",
    "on_made_up_data",
    "permuted_statistics",
]

TOLERANCE = 1e-9  # relative, for rounding errors; the noise is widened by as much
_BATCH_ENTRIES = 1 << 20  # numbers in a stack of permuted data


class _NotANumberError(Exception):
    """What came back has the wrong type or shape; the text holds nothing of its value."""


@dataclass(frozen=True, slots=True)
class UserStatistic:
    """A function of the user's, called on stacks (permutations, rows, columns)."""

    function: Callable[[Any, Any], Any]
    vectorized: bool

    @property
    def name(self) -> str:
        """What the user calls it."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, x: Rows, y: Rows) -> Rows:
        """Return a number for each member."""
        x, y = (side[..., 0] if side.shape[2] == 1 else side for side in (x, y))
        if self.vectorized:
            return _numbers(self.function(x, y), (len(x),))
        return np.array([_numbers(self.function(*pair), ()) for pair in zip(x, y, strict=True)])

    def settled(self, x: Rows, y: Rows) -> Rows:
        """Return the numbers with 0.0, a public value, for NaN and infinities."""
        values = self(x, y)
        finite: Rows = np.where(np.isfinite(values), values, 0.0)
        return finite


def _numbers(result: object, shape: tuple[int, ...]) -> Rows:
    values = np.asarray(result)
    if values.dtype.kind not in "biuf" or values.shape != shape:
        wanted = f"{shape[0]} numbers for a stack of {shape[0]}" if shape else "one number"
        got = type(result).__name__
        if isinstance(result, np.ndarray):
            got = f"an array of shape {result.shape} and type {result.dtype}"
        raise _NotANumberError(f"must return {wanted}; it returned {got}.")
    return values.astype(np.float64)


@contextmanager
def on_made_up_data(space: Space) -> Iterator[None]:
    """Explain what a statistic does wrong; the data is made up, so the cause may be shown."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except _NotANumberError as error:
        raise ParameterError(f"statistic {error}") from None
    except Exception as error:
        raise ParameterError(
            f"statistic must return a number for all data that its bounds allow; it raised "
            f"{type(error).__name__} on synthetic data of {space.n} and {space.m} rows."
        ) from error


def check_statistic(statistic: UserStatistic, space: Space, sensitivity: float) -> None:
    """Refuse what is not a function from data to finite numbers, on synthetic data."""
    rng = np.random.default_rng(0)
    x = np.stack([typical(space.x, rng, space.n) for _ in range(2)])
    y = np.stack([typical(space.y, rng, space.m) for _ in range(2)])
    given = x.copy(), y.copy()
    with on_made_up_data(space):
        values = statistic(*given)
        again = statistic(x.copy(), y.copy())
        alone = statistic(x[1:2].copy(), y[1:2].copy())
    if not (np.array_equal(given[0], x) and np.array_equal(given[1], y)):
        raise ParameterError("statistic must not change its input; let it work on a copy.")
    if not np.isfinite(values).all():
        drawn = "uniform within the bounds" if space.x.bounded else "standard normal, no bounds"
        raise ParameterError(
            f"statistic must return finite numbers; it returned NaN or an infinity on synthetic "
            f"data ({drawn}, {space.n} and {space.m} rows)."
        )
    slack = TOLERANCE * (np.abs(values).max() + sensitivity)
    if np.abs(values - again).max() > slack:
        raise ParameterError("statistic must return the same number for the same data.")
    if abs(alone[0] - values[1]) > slack:
        raise ParameterError(
            "statistic must treat each member of the stack alone: a member gave one number by "
            "itself and another with others beside it. Reduce over axis 1, not over axis 0."
        )


def permuted_statistics(
    statistic: UserStatistic,
    space: Space,
    x: Rows,
    y: Rows,
    n_permutations: int,
    rng: np.random.Generator,
) -> Rows:
    """Return the statistic of private rows, then those of random permutations."""
    size = max(1, _BATCH_ENTRIES // (x.size + y.size))
    values = []
    for start in range(0, n_permutations + 1, size):
        count = min(size, n_permutations + 1 - start)
        shuffles = np.tile(np.arange(space.moving), (count, 1))
        random = shuffles[1:] if start == 0 else shuffles  # the first is the observed one
        rng.permuted(random, axis=1, out=random)
        values.append(_on_private_data(statistic, *space.arrange(x, y, shuffles)))
    return np.concatenate(values)


def _on_private_data(statistic: UserStatistic, x: Rows, y: Rows) -> Rows:
    return run_user_code(
        lambda: statistic.settled(x, y),
        message="statistic failed on the private data; no noise was drawn. What it said is "
        "withheld, as it may hold values. It must return a number for all data.",
    )
