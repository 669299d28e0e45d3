"""Record batches of a source, encoded into their place of a block.

Plain columns of numbers, which most are, are fitted to their bounds together, a few rows at a
time: three times as fast as one after the other, and the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.data.columns import (
    BLOCK,
    Units,
    as_floats,
    check_finite,
    fill_codes,
    fill_numbers,
    placed,
    refuse_missing,
)
from privatest.data.schema import CategoricalColumn, Column, NumericColumn

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BatchEncoder", "fill_column", "has_bounds_only"]

_APART = 8  # numbers between two columns


@dataclass(frozen=True, slots=True)
class BatchEncoder:
    """Writes record batches as floats; it travels to other processes.

    Parameters
    ----------
    columns : tuple of Column or None
        Descriptions of the columns in their order; None takes numbers as they are.
    labels : tuple of str
        What messages call them.
    units : {"box", "own"}
        Whether numbers are mapped to [0, 1] by their bounds, or only clipped to them.
    """

    columns: tuple[Column | None, ...]
    labels: tuple[str, ...]
    units: Units

    def __call__(self, batch: pa.RecordBatch, out: NDArray[np.float64]) -> None:
        """Encode a batch into an array of its size."""
        plain: dict[int, NDArray[Any]] = {}
        for place, (column, label) in enumerate(zip(self.columns, self.labels, strict=True)):
            values = batch.column(place)
            if _is_plain(values, column):
                plain[place] = _numbers(values)
            else:
                fill_column(out[:, place], values, column, label, self.units)
        if plain:
            self._fill_plain(plain, out)

    def _fill_plain(self, values: dict[int, NDArray[Any]], out: NDArray[np.float64]) -> None:
        """Write columns of numbers without missing ones among them, NaN excepted."""
        places = list(values)
        if out.shape[1] == 1:
            self._fill_only(values[0], out)
            return
        described = [column for p in places if isinstance(column := self.columns[p], NumericColumn)]
        bounds = np.array([(column.lower, column.upper) for column in described]).T[..., None]
        chosen: Any = slice(None) if len(places) == out.shape[1] else places
        # columns a power of two apart would share the same few lines of the processor's cache
        held = np.empty((len(places), min(BLOCK, len(out)) + _APART))
        for start in range(0, len(out), BLOCK):
            rows = out[start : start + BLOCK]
            block = held[:, : len(rows)]
            for own, numbers in zip(block, values.values(), strict=True):
                own[:] = numbers[start : start + BLOCK]
            if described:  # all of them, or none
                placed(block, bounds[0], bounds[1], self.units, block)
            self._check(block, places)
            rows[:, chosen] = block.T

    def _fill_only(self, numbers: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Write the only column where it belongs, all of it at once."""
        block, column = out.T, self.columns[0]
        if isinstance(column, NumericColumn):
            placed(as_floats(numbers), column.lower, column.upper, self.units, block[0])
        else:
            block[0] = numbers
        self._check(block, [0])

    def _check(self, block: NDArray[np.float64], places: Sequence[int]) -> None:
        """Refuse what is missing, and without bounds what is infinite."""
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(block.sum()):  # then all are: quicker than to look at each
                return
        for own, place in zip(block, places, strict=True):
            if self.columns[place] is None:
                check_finite(own, self.labels[place])
            elif np.isnan(own).any():
                refuse_missing(self.labels[place])


def has_bounds_only(column: Column | None) -> bool:
    """Whether all columns of this kind can be fitted at once."""
    return isinstance(column, NumericColumn) and not column.integer and column.missing == "refuse"


def fill_column(
    out: NDArray[np.float64], values: Any, column: Column | None, label: str, units: Units
) -> None:
    """Write one column: codes of categories, or numbers."""
    if isinstance(column, CategoricalColumn):
        fill_codes(out, values, column, label)
    else:
        fill_numbers(out, values, column, label, units)


def _is_plain(values: Any, column: Column | None) -> bool:
    import pyarrow.types as kinds  # noqa: PLC0415

    number = kinds.is_floating(values.type) or kinds.is_integer(values.type)
    return number and not values.null_count and (column is None or has_bounds_only(column))


def _numbers(values: Any) -> NDArray[Any]:
    """Return plain numbers where they lie; Arrow's own way would load pandas, which takes long."""
    import pyarrow.types as kinds  # noqa: PLC0415

    signed = "i" if kinds.is_signed_integer(values.type) else "u"
    kind = np.dtype(f"{'f' if kinds.is_floating(values.type) else signed}{values.type.byte_width}")
    buffer = values.buffers()[1]
    if not len(values) or buffer is None:
        return np.empty(0, dtype=kind)
    return np.frombuffer(buffer, kind, len(values), values.offset * kind.itemsize)
