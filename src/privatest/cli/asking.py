"""From a command's options to an answer: the path that all data commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from privatest.cli.output import print_result, working
from privatest.errors import ParameterError
from privatest.schema import Schema, parse_bounds

if TYPE_CHECKING:
    from privatest.requests import Request

__all__ = ["answer", "describe"]


def answer(
    request: Request, files: Sequence[Path], described: Schema | None, *, as_json: bool
) -> None:
    """Check the request, read the files, test and print."""
    from privatest.requests import prepare  # noqa: PLC0415
    from privatest.sources import read_table  # noqa: PLC0415

    prepared = prepare(request, described, samples=len(files))
    with working("Reading the data and testing ..."):
        tables = [read_table(file, prepared.names, text=prepared.text) for file in files]
        result = prepared.run(*tables)
    words = prepared.words
    if len(files) > 1:
        words = f"{words}: {' and '.join(map(str, files))}"
    print_result(result, compared=words, as_json=as_json, label=prepared.label)


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
