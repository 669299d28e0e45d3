"""Which sample a row is in, by the value of its group column.

The groups are public: they come from the schema or from the request, never from the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.data.categories import MISSING, UNKNOWN, Categories, label_spelling, spelling
from privatest.data.columns import category_blocks, one_column, refuse_missing
from privatest.data.schema import CategoricalColumn, Schema
from privatest.data.source import Source

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.data.schema import Membership

__all__ = ["Grouping"]

_REST = "rest"


@dataclass(frozen=True, slots=True)
class Grouping:
    """How one table is split in two groups or more.

    Attributes
    ----------
    column : str
        The group column.
    labels : tuple of str
        The groups as they were asked for.
    has_rest : bool
        Whether the last group is everything that the others are not.
    membership : {"private", "public"}
        Whether everybody may know who is in which group.
    described : Schema or None
        Description of the group column; without it the labels are looked for.
    codes : tuple of int or None
        The groups by their place among the described categories; None is the rest.
    """

    column: str
    labels: tuple[str, ...]
    has_rest: bool
    membership: Membership
    described: Schema | None = None
    codes: tuple[int | None, ...] = ()

    @classmethod
    def ask(
        cls,
        column: str,
        schema: Schema | None,
        groups: tuple[str, ...] | None,
        membership: Membership | None,
        *,
        several: bool = False,
    ) -> Grouping:
        """Find the groups in what is public; ``several`` is whether there may be more than two."""
        if groups is not None and not (len(groups) == 2 or (several and len(groups) > 2)):
            raise ParameterError(
                "groups must be two or more." if several else "groups must be a list of two."
            )
        entry = None if schema is None else schema.columns.get(column)
        if schema is None or entry is None:
            if groups is None:
                raise ParameterError(
                    "groups",
                    f"must be given, or a schema with column {column!r}: groups found from the "
                    "data would leak it",
                    remedy={"groups": ""},
                )
            different = len(set(map(label_spelling, groups))) == len(groups)
            if not different or _REST in groups[:-1]:
                raise ParameterError("groups must be different values, only the last may be rest.")
            has_rest = groups[-1] == _REST
            if has_rest and membership != "public":
                # with a schema a mistyped label is refused; here only an empty group would tell
                raise ParameterError(
                    f"groups with '{_REST}' need a Schema that lists the categories of {column!r}, "
                    "as a mistyped group would look like an empty one. Or name all groups; or pass "
                    "adjacency='one', if everybody may know who is in which group.",
                    remedy={"schema": "", "membership": "public"},
                )
            return cls(column, groups, has_rest, membership or "private")
        if not isinstance(entry, CategoricalColumn):
            raise ParameterError(f"group column {column!r} must be categorical in the schema.")
        membership = membership or entry.membership
        if groups is None and (several or len(entry.categories) == 2):
            groups = tuple(map(spelling, entry.categories))
        codes = _declared(column, entry, groups, membership)
        described = schema.select([column])
        return cls(column, groups or (), codes[-1] is None, membership, described, codes)

    @property
    def words(self) -> str:
        """The groups, for a reader."""
        first, *others = self.labels
        named = others[:-1] if self.has_rest else others
        other = [f"{self.column} = {label}" for label in named] + ["the rest"] * self.has_rest
        return f"{self.column} = {first} against {' and '.join(other)}"

    @property
    def examples(self) -> tuple[str, ...]:
        """A value of each group, for made-up rows."""
        if not self.has_rest:
            return self.labels
        named = self.labels[:-1]
        if self.described is None:
            return *named, f"not {named[0]}"
        entry = self.described.columns[self.column]
        assert isinstance(entry, CategoricalColumn)
        code = next(k for k in range(len(entry.categories)) if k not in self.codes)
        return *named, spelling(entry.categories[code])

    def sizes(self, table: pa.Table | Source) -> tuple[int, ...]:
        """Return the sizes of the groups; of public groups only are they public."""
        if isinstance(table, Source):
            return tuple(map(len, self.split(table)))
        return tuple(int(rows.sum()) for rows in self._split(table))

    def split(self, table: pa.Table | Source) -> tuple[Any, ...]:
        """Return the rows of each group, without the group column."""
        if isinstance(table, Source):
            from privatest.data.source_groups import split_source  # noqa: PLC0415

            samples = split_source(table, self)
            self.require_rows([len(sample) > 0 for sample in samples])
            return samples
        rows = table.drop_columns([self.column])
        return tuple(rows.filter(chosen) for chosen in self._split(table))

    def sides(self, codes: NDArray[Any]) -> NDArray[np.intp]:
        """Return which group each row is in, by the codes of the described categories."""
        found = np.full(len(codes), len(self.labels) - 1 if self.has_rest else UNKNOWN)
        for place, code in enumerate(self.codes):
            if code is not None:
                found[codes == code] = place
        return found

    def sides_of(self, values: Any) -> NDArray[np.intp]:
        """Return which group each row is in, by the values of the group column.

        A group may be empty: where membership is private, failing then would tell so.
        """
        label = f"column {self.column!r}"
        if self.described is not None:
            return self.sides(self.described.encode({self.column: values})[:, 0])
        labels = Categories.labelled(self.labels[:-1] if self.has_rest else self.labels)
        blocks = category_blocks(one_column(values, label), labels, label)
        sides = np.concatenate([np.empty(0, np.intp), *blocks])
        if (sides == MISSING).any():
            refuse_missing(label)
        if self.has_rest:
            sides[sides == UNKNOWN] = len(self.labels) - 1
        elif self.membership == "private" and (sides == UNKNOWN).any():
            raise DataError(
                f"{label} has a third group or more: where membership is private, "
                f"groups must name all values there are. Use {self.labels[0]} and {_REST}.",
                remedy={"membership": "public"},
            )
        return sides

    def _split(self, table: pa.Table) -> list[NDArray[np.bool_]]:
        sides = self.sides_of(table.column(self.column))
        self.require_rows([(sides == place).any() for place in range(len(self.labels))])
        return [sides == place for place in range(len(self.labels))]

    def require_rows(self, found: Sequence[bool]) -> None:
        """Refuse an empty group: a mistyped value would give an answer about nobody.

        That a private group is empty is not told.
        """
        if self.membership == "private":
            return
        for label, some in zip(self.labels, found, strict=True):
            if not some:
                raise DataError(f"column {self.column!r} has no row in group {label!r}.")


def _declared(
    column: str,
    entry: CategoricalColumn,
    groups: tuple[str, ...] | None,
    membership: Membership,
) -> tuple[int | None, ...]:
    """Check the groups against the schema; return their codes."""
    if groups is None:
        raise ParameterError(
            "groups",
            f"must be given: column {column!r} has {len(entry.categories)} categories",
            remedy={"groups": ""},
        )
    codes = tuple(_category_code(entry, label) for label in groups)
    for place, (code, label) in enumerate(zip(codes, groups, strict=True)):
        if code is None and (label != _REST or place < len(groups) - 1):
            raise ParameterError(f"group {label!r} is not a category of column {column!r}.")
    if len(set(codes)) < len(codes):
        raise ParameterError("groups must be different categories.")
    if codes[-1] is None and len(codes) > len(entry.categories):
        raise ParameterError(f"groups must leave a category to the {_REST}.")
    if membership == "private" and codes[-1] is not None and len(codes) < len(entry.categories):
        raise ParameterError(
            f"column {column!r} has other categories too: picking some of them would make the "
            f"number of rows private. Use groups {groups[0]} and {_REST}.",
            remedy={"membership": "public"},
        )
    return codes


def _category_code(entry: CategoricalColumn, label: str) -> int | None:
    code = Categories.declared(entry.categories).code_of(label)
    return None if code in (UNKNOWN, MISSING) else code
