"""One order of columns for several samples, where bounds do not name the columns."""

from __future__ import annotations

from collections.abc import Sequence

from privatest.core.errors import DataError, ParameterError
from privatest.data.bounds import Bounds, schema_of
from privatest.data.schema import Schema
from privatest.data.tables import Table, arranged

__all__ = ["align", "names_of_samples"]


def names_of_samples(count: int, *, private_groups: bool) -> tuple[str, ...]:
    """Return what messages call the samples."""
    if private_groups:
        return ("x or y",) * 2 if count == 2 else ("a sample",) * count
    return ("x", "y") if count == 2 else tuple(f"sample {i + 1}" for i in range(count))


def align(
    tables: Sequence[Table], bounds: Bounds, called: Sequence[str], *, private_groups: bool
) -> tuple[list[Table], Schema | None]:
    """Give all samples one order of columns; return them and their schema in that order.

    With private groups the order must not depend on which samples have rows.
    """
    if private_groups:
        return _alike_by_names(tables, bounds, called[0])
    aligned = _alike(tables, called)
    return aligned, schema_of(bounds, *aligned)


def _same_width(tables: Sequence[Table], called: Sequence[str]) -> list[Table]:
    """Refuse samples of different widths; [] has the width of the others."""
    width, name = next(
        ((t.width, name) for t, name in zip(tables, called, strict=True) if not t.shapeless),
        (1, called[0]),
    )
    tables = [table.with_columns(width) for table in tables]
    for table, other in zip(tables, called, strict=True):
        if table.width != width:
            which = "x and y" if len(tables) == 2 else "all samples"
            told = f": {name} has {width}, {other} has {table.width}" if name != other else ""
            raise DataError(f"{which} must have the same columns{told}.")
    return tables


def _alike(tables: Sequence[Table], called: Sequence[str]) -> list[Table]:
    """Give all samples the columns of the first with names, in its order."""
    orders = [table.names for table in tables if table.names is not None]
    if _by_position(tables) and len(set(orders)) > 1:
        raise DataError(
            "samples without names of columns need the others in one order of columns. Give all "
            "samples names, or the others the same order."
        )
    tables = _same_width(tables, called)
    if len(orders) < 2:
        return tables
    return [
        table if table.names is None else arranged(table, orders[0], name)
        for table, name in zip(tables, called, strict=True)
    ]


def _alike_by_names(
    tables: Sequence[Table], bounds: Bounds, name: str
) -> tuple[list[Table], Schema | None]:
    """Give all samples one order of columns that does not depend on which of them have rows.

    It is that of their names, sorted, or their positions where no sample has names. What would
    need to know which sample is the first with rows is refused: docs/proofs/private-groups.md.
    """
    orders = [table.names for table in tables if table.names is not None]
    if orders and len(orders[0]) > 1 and _by_position(tables):
        raise DataError(
            "samples of several columns must all have names of columns, or none of them, if "
            "groups are private. Or give bounds as a Schema, which says what the columns are."
        )
    tables = _same_width(tables, [name] * len(tables))
    schema = schema_of(bounds, *tables)
    if not orders:
        return tables, schema
    order = tuple(sorted(orders[0]))
    tables = [t if t.names is None else arranged(t, order, name) for t in tables]
    if schema is None or len(order) == 1:
        return tables, schema
    if len(set(schema.columns.values())) > 1:
        # whose order of columns is meant? Not to be told by which samples have rows
        raise ParameterError(
            "bounds must be by name, or one pair for all columns: the columns have names, and "
            "samples may have them in different orders."
        )
    return tables, schema.select(order)


def _by_position(tables: Sequence[Table]) -> bool:
    """Whether there is a sample whose columns have no names, other than []."""
    return any(table.names is None and not table.shapeless for table in tables)
