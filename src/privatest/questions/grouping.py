"""Which sample a row is in, by the value of its group column.

The two groups are public: they come from the schema or from the request, never from the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.data.categories import MISSING, UNKNOWN, Categories, label_spelling, spelling
from privatest.data.columns import category_blocks, refuse_missing
from privatest.data.schema import CategoricalColumn, Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.data.schema import Membership

__all__ = ["Grouping"]

_REST = "rest"
_FIRST, _SECOND = 0, 1  # their codes as labels; any other row is UNKNOWN


@dataclass(frozen=True, slots=True)
class Grouping:
    """How one table is split in two.

    Attributes
    ----------
    column : str
        The group column.
    labels : tuple of str
        The two groups as they were asked for.
    has_rest : bool
        Whether the second group is everything that the first is not.
    membership : {"private", "public"}
        Whether everybody may know who is in which group.
    described : Schema or None
        Description of the group column; without it the labels are looked for.
    codes : tuple of int or None
        The two groups by their place among the described categories; None is the rest.
    """

    column: str
    labels: tuple[str, str]
    has_rest: bool
    membership: Membership
    described: Schema | None = None
    codes: tuple[int | None, int | None] = (None, None)

    @classmethod
    def ask(
        cls,
        column: str,
        schema: Schema | None,
        groups: tuple[str, str] | None,
        membership: Membership | None,
    ) -> Grouping:
        """Find the two groups in what is public."""
        entry = None if schema is None else schema.columns.get(column)
        if schema is None or entry is None:
            if groups is None:
                raise ParameterError(
                    f"groups must be given, or a schema with column {column!r}: groups found from "
                    "the data would leak it."
                ).with_flags(f"Pass --groups A B, or --groups A {_REST}.")
            first, second = groups
            if label_spelling(first) == label_spelling(second) or first == _REST:
                raise ParameterError("groups must be two different values, the first not rest.")
            return cls(column, groups, second == _REST, membership or "private")
        if not isinstance(entry, CategoricalColumn):
            raise ParameterError(f"group column {column!r} must be categorical in the schema.")
        membership = membership or entry.membership
        labels, codes = _declared(column, entry, groups, membership)
        described = schema.select([column])
        return cls(column, labels, codes[1] is None, membership, described, codes)

    @property
    def words(self) -> str:
        """The two groups, for a reader."""
        first, second = self.labels
        other = "the rest" if self.has_rest else f"{self.column} = {second}"
        return f"{self.column} = {first} against {other}"

    @property
    def examples(self) -> tuple[str, str]:
        """A value of each group, for made-up rows."""
        first, second = self.labels
        if not self.has_rest:
            return first, second
        if self.described is None:
            return first, f"not {first}"
        entry = self.described.columns[self.column]
        assert isinstance(entry, CategoricalColumn)
        code = 1 if self.codes[0] == 0 else 0
        return first, spelling(entry.categories[code])

    def sizes(self, table: pa.Table) -> tuple[int, int]:
        """Return the sizes of the two groups; of public groups only are they public."""
        first, second = self._split(table)
        return int(first.sum()), int(second.sum())

    def split(self, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return the rows of the two groups, without the group column."""
        first, second = self._split(table)
        rows = table.drop_columns([self.column])
        return rows.filter(first), rows.filter(second)

    def _split(self, table: pa.Table) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        sides = self._sides(table)
        for side, label in zip((_FIRST, _SECOND), self.labels, strict=True):
            # a mistyped value would otherwise give an answer about nobody
            if not (sides == side).any():
                raise DataError(f"column {self.column!r} has no row in group {label!r}.")
        return sides == _FIRST, sides == _SECOND

    def _sides(self, table: pa.Table) -> NDArray[np.intp]:
        """Return which group each row is in."""
        if self.described is not None:
            codes = self.described.encode(table.select([self.column]))[:, 0]
            others = _SECOND if self.has_rest else UNKNOWN
            second = np.where(codes == self.codes[1], _SECOND, others)
            return np.where(codes == self.codes[0], _FIRST, second)
        labels = Categories.labelled(self.labels[:1] if self.has_rest else self.labels)
        blocks = category_blocks(table.column(self.column), labels, f"column {self.column!r}")
        sides = np.concatenate(list(blocks))
        if (sides == MISSING).any():
            refuse_missing(f"column {self.column!r}")
        if self.has_rest:
            sides[sides == UNKNOWN] = _SECOND
        elif self.membership == "private" and (sides == UNKNOWN).any():
            raise DataError(
                f"column {self.column!r} has a third group: where membership is private, "
                f"groups must name all values there are. Use {self.labels[0]} and {_REST}."
            ).with_flags("Or pass --membership public.")
        return sides


def _declared(
    column: str,
    entry: CategoricalColumn,
    groups: tuple[str, str] | None,
    membership: Membership,
) -> tuple[tuple[str, str], tuple[int | None, int | None]]:
    """Check the groups against the schema; return them and their codes."""
    several = len(entry.categories) > 2
    if groups is None:
        if several:
            raise ParameterError(
                f"groups must be given: column {column!r} has {len(entry.categories)} categories."
            ).with_flags(f"Pass --groups A B, or --groups A {_REST}.")
        labels = (spelling(entry.categories[0]), spelling(entry.categories[1]))
        return labels, (0, 1)
    first, second = (_category_code(entry, label) for label in groups)
    if first is None or (second is None and groups[1] != _REST):
        label = groups[0] if first is None else groups[1]
        raise ParameterError(f"group {label!r} is not a category of column {column!r}.")
    if first == second:
        raise ParameterError("groups must be two different categories.")
    if membership == "private" and several and second is not None:
        raise ParameterError(
            f"column {column!r} has other categories too: picking two of them would make the "
            f"number of rows private. Use groups {groups[0]} and {_REST}."
        ).with_flags("Or pass --membership public.")
    return groups, (first, second)


def _category_code(entry: CategoricalColumn, label: str) -> int | None:
    code = Categories.declared(entry.categories).code_of(label)
    return None if code in (UNKNOWN, MISSING) else code
