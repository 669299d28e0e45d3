"""Some rows of a source: those of a group, or those that pass a filter on public columns.

The columns that decide are read once, to count how many rows of each part are chosen. The counts
of private groups are private, as the rows are: they say where a group's rows begin, and go where
the rows go.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.data.source import Part, Source

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.data.grouping import Grouping

__all__ = ["chosen_source", "split_source"]

Chooser = Callable[[Any], NDArray[Any]]
"""A record batch of the deciding columns to whether each row is chosen; it travels."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # the number of rows may be private
class ChosenRows:
    """The rows of a part that are chosen by some columns."""

    part: Part
    deciding: tuple[str, ...]
    chooser: Chooser
    rows: int

    @property
    def label(self) -> str:
        """That of the part."""
        return self.part.label

    def as_text(self, names: Collection[str]) -> ChosenRows:
        """Return it with these columns read as they are written."""
        part = self.part
        return replace(self, part=part.as_text(names)) if hasattr(part, "as_text") else self

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        import pyarrow as pa  # noqa: PLC0415

        more = [name for name in self.deciding if name not in columns]
        for batch in self.part.batches([*columns, *more]):
            chosen = self.chooser(batch.select(list(self.deciding)))
            yield batch.select(list(columns)).filter(pa.array(chosen))


def split_source(source: Source, grouping: Grouping) -> tuple[Source, ...]:
    """Return the rows of each group, without the group column; a group may be empty."""
    names = [name for name in source.names if name != grouping.column]
    deciding = (grouping.column,)
    sides = partial(_sides, grouping=grouping)
    counts = _counted(source, deciding, sides, len(grouping.labels))
    places = range(len(grouping.labels))
    return tuple(
        _chosen(source, names, deciding, partial(_in_group, grouping=grouping, place=place), own)
        for place, own in zip(places, counts.T, strict=True)
    )


def chosen_source(
    source: Source, names: Sequence[str], deciding: Sequence[str], chooser: Chooser
) -> Source:
    """Return the rows that pass, with these columns; how many pass becomes known."""
    counts = _counted(source, tuple(deciding), chooser, 2)
    return _chosen(source, names, tuple(deciding), chooser, counts[:, 1])


def _sides(batch: Any, grouping: Grouping) -> NDArray[np.intp]:
    return grouping.sides_of(batch.column(0))


def _in_group(batch: Any, grouping: Grouping, place: int) -> NDArray[np.bool_]:
    chosen: NDArray[np.bool_] = _sides(batch, grouping) == place
    return chosen


def _chosen(
    source: Source,
    names: Sequence[str],
    deciding: tuple[str, ...],
    chooser: Chooser,
    counts: NDArray[np.intp],
) -> Source:
    read = source.as_text(deciding)
    parts = tuple(
        ChosenRows(part, deciding, chooser, int(rows))
        for part, rows in zip(read.parts, counts, strict=True)
        if rows
    )
    return replace(read.select(names), parts=parts, some_of=source.public_rows)


def _counted(
    source: Source, deciding: tuple[str, ...], sides: Chooser, groups: int
) -> NDArray[np.intp]:
    """Count the rows of each part (a row of the answer) that are on each side."""
    read = source.select(deciding).as_text(deciding)

    def count(part: Part) -> NDArray[np.intp]:
        counts = np.zeros(groups, dtype=np.intp)
        for batch in replace(read, parts=(part,)).tables(0, part.rows, deciding):
            found = sides(batch).astype(np.intp, copy=False)
            counts += np.bincount(found[found >= 0], minlength=groups)
        return counts

    with ThreadPoolExecutor(source.workers.threads or os.cpu_count() or 1) as pool:
        return np.array(list(pool.map(count, read.parts)), dtype=np.intp).reshape(-1, groups)
