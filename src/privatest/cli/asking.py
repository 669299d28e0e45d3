"""From a command's options to an answer: the path that all data commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privatest.cli.files import check_picture, check_report, draw, write_report
from privatest.cli.output import passes, print_note, print_result, progress, working
from privatest.cli.places import check
from privatest.cli.spending import Purse, spending
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.data.place import Place
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema, parse_bounds
from privatest.data.source import Source

if TYPE_CHECKING:
    from privatest.requests.request import Prepared, Request
    from privatest.requests.results import Result

PLANNED = ("two-sample", "independence", "paired")

__all__ = ["answer", "describe", "public_words", "read_locations"]


def answer(
    request: Request,
    files: Sequence[Place],
    described: Schema | None,
    purse: Purse,
    *,
    as_json: bool,
    plot: Path | None = None,
    report: Path | None = None,
    about: Mapping[str, Any] | None = None,
    keep: Callable[[Any], dict[str, Any]] | None = None,
    show: Callable[[Any, Mapping[str, Any]], None] | None = None,
    told: Mapping[str, Any] | None = None,
) -> None:
    """Check the request, reserve its budget, read the files, answer, record and print.

    Parameters
    ----------
    request, files, described, purse
        What is asked, of which files, and which budget pays.
    as_json : bool
        Whether to print one JSON document.
    plot : Path, optional
        A picture to draw of what was released.
    report : Path, optional
        A page to write about it.
    about : mapping, optional
        Public words for that page.
    keep : callable, optional
        From the result to what is recorded; by default all of it.
    show : callable, optional
        Prints the result, with what a JSON document says besides.
    told : mapping, optional
        Words for the record in place of options that are tables: the names of their files.
    """
    from privatest.requests.prepare import prepare  # noqa: PLC0415
    from privatest.requests.rehearsal import rehearse, rehearse_sizes  # noqa: PLC0415

    prepared = prepare(request, described, samples=len(files))
    if plot is not None:
        check_picture(plot, request)
    if report is not None:
        check_report(report, files)
    for file in files:  # a mistyped name should not cost anything
        check(file, prepared.names, prepared.schema)
    _check_ids(files, described)

    def rehearsal() -> None:
        _count_persons(prepared, files, described)
        with working("Rehearsing on made-up rows ..."):
            sizes = _public_sizes(prepared, files)
            hint = "" if as_json else _hint(prepared, sizes)
            rehearse(prepared, sizes)
            if any(file.passes(prepared.names) for file in files):
                rehearse_sizes(prepared, sizes)
        if hint:  # before anything is charged or read: it knows public numbers only
            print_note(hint)

    full = prepared.asked | dict(told or {})
    with spending(
        purse,
        request.budget,
        files,
        gaussian=request.gaussian,
        rehearsal=rehearsal,
        asked=_asked(full, prepared, files, _used(prepared, described)),
    ) as record:
        with working("Reading the data ..."):
            tables = [file.read(prepared.names, prepared.text) for file in files]
        result = _run(prepared, tables)
        receipt = record(result.to_dict() if keep is None else keep(result))
    words = prepared.words
    if len(files) > 1:
        words = f"{words}: {' and '.join(map(str, files))}"
    more = {"request": full, "files": [*map(str, files)], "ledger": receipt.to_list()}
    used = _used(prepared, described)
    more |= {} if used is None else {"schema": used.to_toml()}
    with receipt.shown(as_json=as_json):
        if show is not None:
            show(result, more)
        else:
            print_result(result, compared=words, as_json=as_json, label=prepared.label, more=more)
    if plot is not None:
        draw(result, plot)
    if report is not None:
        said = {"compared": words} if prepared.label == "compared" else {}
        write_report(result, report, more | said | dict(about or {}))


def _check_ids(files: Sequence[Place], described: Schema | None) -> None:
    """Refuse files without the id column that the schema names."""
    if described is not None and described.id_column is not None:
        for file in files:
            file.check([described.id_column])


def _count_persons(prepared: Prepared, files: Sequence[Place], described: Schema | None) -> None:
    """Refuse data in which a person has more rows than the schema says: nothing is spent yet."""
    if described is None or (who := described.id_column) is None:
        return
    from privatest.data.by_group import persons_in_groups  # noqa: PLC0415
    from privatest.data.persons import check_persons  # noqa: PLC0415

    with working("Counting rows per person ..."):
        apart, grouping = prepared.arguments.get("adjacency") == "both", prepared.grouping
        if apart and grouping is not None:
            names = [who, grouping.column]
            persons_in_groups(files[0].read(names, names), grouping, described)
        else:
            check_persons(
                described, [file.read([who], [who]) for file in files], together=not apart
            )


def _used(prepared: Prepared, described: Schema | None) -> Schema | None:
    """Return the description of the columns that are used."""
    names = [name for name in prepared.names if described and name in described.columns]
    return described.select(names) if described and names else None


def _hint(prepared: Prepared, sizes: Sequence[int]) -> str:
    """Return a sentence on a test that would see far more at these public sizes, or nothing."""
    from privatest.planning.recommendation import better_test, column_types  # noqa: PLC0415

    request, schema, grouping = prepared.request, prepared.schema, prepared.grouping
    if request.question not in PLANNED or request.options or "each_column" in request.parts:
        return ""
    count = len(prepared.names) - (grouping is not None)
    rows = 1 if schema is None else schema.rows_per_person
    private = prepared.arguments.get("adjacency") == "row"
    return better_test(
        request.question,
        request.method,
        sizes,
        column_types(count if schema is None else schema),
        epsilon=float(request.budget.epsilon) / rows,
        delta=float(request.budget.delta),
        membership="private" if private else "public",
    )


def _run(prepared: Prepared, tables: Sequence[Any]) -> Result:
    """Answer, and show how far it is."""
    counted = prepared.request.entry.steps
    if any(isinstance(table, Source) for table in tables):
        with passes("Reading") as seen:
            return prepared.run(
                *(t.with_progress(seen) if isinstance(t, Source) else t for t in tables)
            )
    with progress("Releasing" if counted else "Computing", counted=counted) as step:
        if step is None:
            return prepared.run(*tables)
        return prepared.run(*tables, progress=lambda done, steps: step(done / steps))


def _asked(
    full: Mapping[str, Any], prepared: Prepared, files: Sequence[Place], used: Schema | None
) -> dict[str, Any]:
    """Return the request as the history keeps it."""
    question, budget = prepared.request.question, prepared.request.budget
    return public_words(question, budget, files, used) | dict(full)


def _public_sizes(prepared: Prepared, files: Sequence[Place]) -> Sequence[int]:
    """Return the sizes that everybody may know: of files, and of public groups."""
    grouping = prepared.grouping
    if grouping is not None and grouping.membership == "public":
        return grouping.sizes(files[0].read([grouping.column], [grouping.column]))
    counts = [file.count(prepared.names) for file in files]
    if grouping is None:
        return counts
    parts = len(grouping.labels)
    return [(counts[0] + place) // parts for place in reversed(range(parts))]


def public_words(
    question: str, budget: Budget, files: Sequence[Place], described: Schema | None, **more: object
) -> dict[str, Any]:
    """Return a request in public words, with bounds and categories: all that decides an answer."""
    columns = {} if described is None else described.columns
    numeric = {n: [c.lower, c.upper] for n, c in columns.items() if isinstance(c, NumericColumn)}
    labels = {n: [*c.categories] for n, c in columns.items() if isinstance(c, CategoricalColumn)}
    rows = 1 if described is None else described.rows_per_person
    words = {
        "columns": [*columns],
        **more,
        "bounds": numeric,
        "categories": labels,
        "rows_per_person": None if rows == 1 else rows,
        "files": [*map(str, files)],
    }
    cost = {"epsilon": f"{budget.epsilon:f}", "delta": f"{budget.delta:f}"}
    given = {name: value for name, value in words.items() if value not in (None, {}, [])}
    return {"question": question, **cost, **given}


def read_locations(file: Path | None, drawn: int | None) -> dict[str, list[Any]] | int | None:
    """Return public locations from a file, or how many to spread over the bounds."""
    if file is not None and drawn is not None:
        raise ParameterError("pass --locations or --draw-locations, not both.")
    if file is None:
        return drawn
    from privatest.data.sources import read_table  # noqa: PLC0415

    columns: dict[str, list[Any]] = read_table(file).to_pydict()
    return columns


def describe(path: Path | None, bounds: Sequence[str], rows: int | None) -> Schema | None:
    """Return the description of the columns from --schema or from --bounds."""
    if path is not None and bounds:
        raise ParameterError("pass --schema or --bounds, not both: the schema has the bounds.")
    if path is None:
        pairs = [parse_bounds(text) for text in bounds]
        named = {name: (low, high) for name, low, high in pairs}
        if len(named) < len(pairs):
            raise ParameterError("--bounds names a column twice.")
        if not named and rows is not None and rows > 1:  # it would be lost, and noise too small
            raise ParameterError(
                "--rows-per-person needs the columns described: pass --bounds NAME=LOW:HIGH too, "
                "or a schema."
            )
        return Schema.from_bounds(named, rows_per_person=rows or 1) if named else None
    schema = Schema.from_toml(path)
    if rows is None or rows == schema.rows_per_person:
        return schema
    if schema.rows_per_person != 1:
        raise ParameterError(
            f"--rows-per-person {rows} contradicts the schema, which says {schema.rows_per_person}."
        )
    return replace(schema, rows_per_person=rows)
