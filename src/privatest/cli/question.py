"""From options to a question that can be tested; everything but the rows is public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from privatest.cli.groups import Grouping
from privatest.errors import ParameterError, PrivacyError
from privatest.privacy import Adjacency
from privatest.schema import Schema, parse_bounds
from privatest.sources import read_table

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.cli.options import Membership

__all__ = ["Question", "chosen_columns", "describe"]

_WHY = "bounds or categories found from the data would leak it"


@dataclass(frozen=True, slots=True)
class Question:
    """Two samples, by where they are and what is known about them.

    Attributes
    ----------
    files : sequence of Path
        One file with groups, or one for each sample.
    schema : Schema
        The columns that are compared.
    grouping : Grouping or None
        How one file is split.
    adjacency : {"one", "both", "row"}
        What is hidden.
    """

    files: Sequence[Path]
    schema: Schema
    grouping: Grouping | None
    adjacency: Adjacency

    @classmethod
    def ask(
        cls,
        *,
        files: Sequence[Path],
        described: Schema | None,
        columns: Sequence[str] | None = None,
        group: str | None = None,
        groups: tuple[str, str] | None = None,
        membership: Membership | None = None,
        adjacency: Adjacency | None = None,
    ) -> Question:
        """Check that the options fit together, before any file of data is opened."""
        if len(files) == 1 and group is None:
            raise ParameterError("pass --group COLUMN to split the file, or a second file.")
        if len(files) == 2 and (group is not None or groups is not None):
            raise ParameterError("--group and --groups split one file; here are two.")
        grouping = None
        if group is not None:
            grouping = Grouping.ask(group, described, groups, membership)
            membership = grouping.membership
        return cls(
            files,
            chosen_columns(described, columns, group),
            grouping,
            _hidden(membership or "public", adjacency),
        )

    @property
    def words(self) -> str:
        """What is compared with what."""
        names = ", ".join(self.schema.columns)
        sides = " and ".join(map(str, self.files)) if self.grouping is None else self.grouping.words
        return f"{names}: {sides}"

    def samples(self) -> tuple[pa.Table, pa.Table]:
        """Read the two samples."""
        names, text = list(self.schema.columns), self.schema.categorical_names
        if self.grouping is None:
            first, second = (read_table(path, names, text=text) for path in self.files)
            return first, second
        group = self.grouping.column
        table = read_table(self.files[0], [*names, group], text=[*text, group])
        return self.grouping.split(table)


def describe(path: Path | None, bounds: Sequence[str], rows: int | None) -> Schema | None:
    """Return the description of the columns from --schema or from --bounds."""
    if path is not None and bounds:
        raise ParameterError("pass --schema or --bounds, not both: the schema has the bounds.")
    if path is None:
        pairs = [parse_bounds(text) for text in bounds]
        named = {name: (low, high) for name, low, high in pairs}
        if len(named) < len(pairs):
            raise ParameterError("--bounds names a column twice.")
        return Schema.from_bounds(named, rows_per_person=rows or 1) if named else None
    schema = Schema.from_toml(path)
    if rows is None or rows == schema.rows_per_person:
        return schema
    if schema.rows_per_person != 1:
        raise ParameterError(
            f"--rows-per-person {rows} contradicts the schema, which says {schema.rows_per_person}."
        )
    return replace(schema, rows_per_person=rows)


def chosen_columns(
    described: Schema | None, columns: Sequence[str] | None, group: str | None = None
) -> Schema:
    """Return the schema of the columns that a test looks at."""
    known = [] if described is None else [name for name in described.columns if name != group]
    names = known if columns is None else columns
    if group is not None and group in names:
        raise ParameterError(f"column {group!r} is the group; it cannot be compared as well.")
    unknown = next((name for name in names if name not in known), None)
    if described is None or unknown is not None or not names:
        name = unknown or "COLUMN"
        missing = "no column is described" if unknown is None else f"column {name!r} has no bounds"
        raise ParameterError(
            f"{missing}: declare --bounds {name}=LOW:HIGH or a schema, because {_WHY}."
        )
    return described.select(names)


def _hidden(membership: Membership, adjacency: Adjacency | None) -> Adjacency:
    """Return the adjacency, which has to hide the group where that is private."""
    if membership == "public":
        return adjacency or "one"
    if adjacency not in (None, "row"):
        raise PrivacyError(
            f"--adjacency {adjacency} needs public membership: group sizes would leak. Use "
            "row, or pass --membership public if everybody may know who is in which group."
        )
    return "row"
