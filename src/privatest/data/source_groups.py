"""A source split by a group column: the same parts, of which each group takes its own rows.

The group column is read once, to count how many rows of each part are in which group. The counts
of private groups are private, as the rows are: they say where a group's rows begin, and leave
this machine with them only.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privatest.data.source import Part, Source

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.data.grouping import Grouping

__all__ = ["split_source"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # the number of rows may be private
class GroupRows:
    """The rows of a part that are in one group."""

    part: Part
    grouping: Grouping
    place: int
    rows: int

    @property
    def label(self) -> str:
        """That of the part."""
        return self.part.label

    def as_text(self, names: Collection[str]) -> GroupRows:
        """Return it with these columns read as they are written."""
        part = self.part
        return replace(self, part=part.as_text(names)) if hasattr(part, "as_text") else self

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        import pyarrow as pa  # noqa: PLC0415

        own = self.grouping.column
        for batch in self.part.batches([*columns, *([] if own in columns else [own])]):
            sides = self.grouping.sides_of(batch.column(own))
            yield batch.select(list(columns)).filter(pa.array(sides == self.place))


def split_source(source: Source, grouping: Grouping) -> tuple[Source, ...]:
    """Return the rows of each group, without the group column; a group may be empty."""
    read = source.select([grouping.column]).as_text([grouping.column])
    threads = source.workers.threads or os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        counts = list(pool.map(lambda part: _counts(read, part, grouping), read.parts))
    names = [name for name in source.names if name != grouping.column]
    text = source.as_text([grouping.column])
    return tuple(
        replace(
            text.select(names),
            parts=tuple(
                GroupRows(part, grouping, place, int(own[place]))
                for part, own in zip(text.parts, counts, strict=True)
                if own[place]
            ),
        )
        for place in range(len(grouping.labels))
    )


def _counts(source: Source, part: Part, grouping: Grouping) -> NDArray[np.intp]:
    """Count the rows of each group in a part."""
    counts = np.zeros(len(grouping.labels), dtype=np.intp)
    for batch in replace(source, parts=(part,)).tables(0, part.rows, source.names):
        sides = grouping.sides_of(batch.column(0))
        counts += np.bincount(sides[sides >= 0], minlength=len(counts))
    return counts
