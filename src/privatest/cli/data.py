"""``privatest schema`` and ``check``: describe data, and see whether it fits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privatest.cli import options
from privatest.cli.output import Page, check_new, print_json, print_text, working, write_file
from privatest.cli.questions import describe
from privatest.core.errors import DataError
from privatest.data.sources import Source

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.data.reading import Grouping
    from privatest.data.schema import Schema

_NOT_PRIVATE = "This is for those who may see the data: what does not fit is not private."


def schema(
    data: options.DataFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where to write it.", show_default="the screen"
        ),
    ] = None,
    force: options.Force = False,
) -> None:
    """Write a template of the schema, to be completed by hand.

    It is made from the names and types of the columns only. Bounds and
    categories are for you to fill in from what is publicly known: found from
    the data they would leak it.

    \b
    Example:
      privatest schema visits.csv -o visits.toml
    """
    if output is not None:
        check_new(output, "output", force)

    from privatest.data.schema import schema_template  # noqa: PLC0415

    template = schema_template(data.schema())
    if output is None:
        print_text(template.removesuffix("\n"))
        return
    write_file(output, template)
    Page().line(f"Wrote {output}. Fill in bounds and categories, then pass it as --schema.")


def check(
    data: options.DataFile,
    *,
    group: options.GroupColumn = None,
    groups: options.Groups = None,
    columns: options.Columns = None,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    membership: options.MembershipOption = None,
    as_json: options.Json = False,
) -> None:
    """Check that data fits its description, at no cost.

    It finds what a test would stumble over after it was paid for: missing
    values, text among numbers, categories that are not declared, a third group,
    more rows of a person than the schema says, if it names an id_column.
    What it says is not private: it is for those who may see the data anyway,
    and not to be published.

    \b
    Example:
      privatest check visits.csv --bounds visits=0:80 --bounds age=0:100
      privatest check visits.csv --group plan --groups basic plus \\
        --bounds visits=0:80
    """
    from privatest.data.reading import Grouping, check_person_rows  # noqa: PLC0415
    from privatest.requests.prepare import chosen_columns  # noqa: PLC0415

    described = describe(schema, bounds)
    split = None if group is None else Grouping.ask(group, described, groups, membership)
    names = None if columns is None else options.read_names(columns, described)
    chosen = chosen_columns(described, names, group)
    text = [*chosen.categorical_names, *([] if group is None else [group])]
    with working("Reading the data ..."):
        table = data.read([*chosen.columns, *([] if group is None else [group])], text)
        problems = _problems(table, chosen, split)
        if described is not None and (who := described.id_column) is not None:
            with _noting(problems, who):
                check_person_rows(described, [data.read([who], [who])], tell=True)
    if as_json:
        rows = [{"name": name, "problem": problem} for name, problem in problems.items()]
        fits = not any(problems.values())
        print_json({"file": str(data), "rows": len(table), "fits": fits, "columns": rows})
    else:
        _print(problems, len(table))
    if any(problems.values()):
        raise typer.Exit(2)


def _problems(
    table: pa.Table | Source, chosen: Schema, split: Grouping | None
) -> dict[str, str | None]:
    """Return what is wrong with each column, or None."""
    found: dict[str, str | None] = {}
    for name in chosen.columns:
        with _noting(found, name):
            _fit(table.select([name]), chosen.select([name]))
    if split is not None:
        with _noting(found, split.column):
            split.split(table)
    return found


def _fit(table: pa.Table | Source, described: Schema) -> None:
    """Fit a column to its description, block by block where it is not in memory."""
    if not isinstance(table, Source):
        described.encode(table)
        return
    from privatest.data.encoding import encode_sample  # noqa: PLC0415
    from privatest.data.sources import as_blocks  # noqa: PLC0415

    sample = encode_sample(table, described, "")
    for _ in as_blocks(sample.held).blocks(0, len(sample)):
        pass


@contextmanager
def _noting(found: dict[str, str | None], name: str) -> Iterator[None]:
    found[name] = None
    try:
        yield
    except DataError as error:
        found[name] = str(error)


def _print(problems: dict[str, str | None], rows: int) -> None:
    page = Page()
    wrong = sum(problem is not None for problem in problems.values())
    verdict = "All columns fit" if not wrong else f"{wrong} of {len(problems)} columns do not fit"
    page.line(f"{verdict} their description ({rows:,} rows).", style="bold")
    for name, problem in problems.items():
        page.line(f"  {name}: fits" if problem is None else f"  {problem}")
    if wrong:
        page.line(_NOT_PRIVATE)
