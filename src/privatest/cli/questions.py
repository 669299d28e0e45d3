"""Commands of questions: from options to an answer that is paid for, recorded and printed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from privatest.cli import options
from privatest.cli.output import (
    check_picture,
    check_report,
    draw,
    passes,
    print_note,
    print_result,
    progress,
    working,
    write_report,
)
from privatest.cli.spending import Purse, spending
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.data.engines import Engine, EngineConfig
from privatest.data.reading import Place
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema, parse_bounds
from privatest.data.sources import Source
from privatest.requests.catalogue import METHODS, PARTS, default_method

if TYPE_CHECKING:
    from privatest.requests.request import Prepared, Request
    from privatest.requests.results import Result

_PLANNED = ("two-sample", "independence", "paired")  # questions with tables of power

# Help of each command.
HELP: Mapping[str, str] = {
    "two-sample": """Test whether two samples come from the same distribution.

    Give one file with the column that holds the group, or two files. Whole
    distributions are compared, not only means. Columns are described by
    --bounds or by a schema: bounds found from the data would leak it.

    \b
    Example:
      privatest two-sample visits.csv --group plan --groups basic plus \\
        --bounds visits=0:80 --epsilon 1
    """,
    "independence": """Test whether two sides of the same rows are independent.

    Any kind of dependence counts, not only correlation, between numbers and
    categories alike; --method kendall, spearman, pearson or slope look at
    two columns that rise together, and estimate how much. Columns are described
    by --bounds or by a schema: bounds found from the data would leak it.

    With --given the question is whether one column tells more about another
    than the given columns do.

    \b
    Example:
      privatest independence visits.csv --x age --y visits \\
        --bounds age=0:100 --bounds visits=0:80 --epsilon 1
      privatest independence visits.csv --x age --y visits --given income \\
        --bounds age=0:100 --bounds visits=0:80 --bounds income=0:200 \\
        --epsilon 1 --delta 1e-6
    """,
    "paired": """Test whether something changed between two measurements of the same rows.

    The differences, after minus before, are tested for symmetry about 0. Only
    their signs and their order count, so that no bounds are needed; where
    they are declared values outside are clipped.

    \b
    Example:
      privatest paired visits.csv --before visits_2023 --after visits_2024 \\
        --method wilcoxon --epsilon 1
    """,
    "fit": """Test whether a column follows a given distribution, or one of a family.

    With --dist the distribution has all its parameters: those estimated from
    the data would leak it. Bounds are not needed, and a schema only says how
    missing values count and how many rows a person has. With --family location
    and scale are unknown, and bounds are needed. With --shares the column is
    categorical, and a schema has its categories.

    \b
    Example:
      privatest fit visits.csv --column age --dist "uniform(18, 62)" --epsilon 1
      privatest fit visits.csv --column age --family norm \\
        --bounds age=0:120 --epsilon 1
      privatest fit visits.csv --column plan --shares equal \\
        --schema visits.toml --epsilon 1
    """,
    "mean": """Estimate means of numeric columns, or a share, with intervals.

    Columns are described by --bounds or by a schema: bounds found from the data
    would leak it, and the noise grows with them. The covariance, which the
    intervals need, is released too and is part of the JSON document. With
    --method proportion: how many rows are a success, in one column. --success says
    what one is, if the column is not of integers between 0 and 1 (integer = true in
    the schema).

    With --q a quantile of one column is estimated instead, the median for 0.5,
    with an interval that holds for every distribution.

    \b
    Example:
      privatest mean visits.csv --bounds visits=0:80 --bounds age=18:80 \\
        --epsilon 1
      privatest mean visits.csv --schema visits.toml --columns plan \\
        --success basic --epsilon 1
      privatest mean visits.csv --q 0.5 --bounds age=18:80 --epsilon 1
    """,
    "release": """Publish synthetic rows that represent the private ones.

    You pay once. Anyone may then query the synthetic rows for means,
    probabilities, quantiles and distances with `privatest query`, or train
    models on them, at no further cost. Columns are described by --bounds or
    by a schema; fewer columns make a better release.

    \b
    Example:
      privatest release visits.csv --bounds visits=0:80 --bounds age=0:100 \\
        --epsilon 1 --delta 1e-6 --points 50 -o synthetic.parquet
    """,
}


def command(question: str) -> Callable[..., None]:
    """Return the command of a question; its options are derived from the catalogue."""
    if question == "release":
        from privatest.cli.releases import release  # noqa: PLC0415

    parameters = options.question_parameters(question)

    def run(**values: Any) -> None:
        if question == "release":
            release(**values)
        else:
            _answer_question(question, values)

    run.__doc__ = HELP[question]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return reading(run)


def _answer_question(question: str, values: dict[str, Any]) -> None:
    """Answer a question from the values of its options."""
    data, other = values["data"], values.get("other")
    if other is not None and _is_half_a_name(other):
        raise ParameterError(
            f"there is no file {other.text!r}. Quote names with spaces: --columns 'a name'."
        )
    described = describe(values["schema"], values["bounds"], values["rows_per_person"])
    files = [data] if other is None else [data, other]
    request = read_request(question, values, described)
    purse = Purse(values["ledger"], values["dataset"], values["no_ledger"])
    if other is not None and values["adjacency"] != "both":
        _require_two_groups(data, other, purse)
    answer(
        request,
        files,
        described,
        purse,
        as_json=values["as_json"],
        plot=values["plot"],
        report=values["report"],
    )


def read_request(question: str, values: dict[str, Any], described: Schema | None) -> Request:
    """Return the request that a command's options ask for."""
    from privatest.requests.request import Request  # noqa: PLC0415

    if question == "two-sample":
        values = values | {
            "groups": _all_groups(values["groups"], values["more_groups"]),
            "each_column": options.read_each(values["each_column"], values["adjust"]),
            "locations": _locations(values["locations"], values["draw_locations"]),
        }
    given = {name: value for name, value in values.items() if value is not None}
    for name in {"columns", "x", "y", "given"} & given.keys():
        given[name] = options.read_names(given[name], described, name)
    for name, read in options.READERS.items():
        if name in given:
            given[name] = read(given[name])
    methods = METHODS[question]
    method = values.get("method")
    if method is None:  # a part of the request may select one
        chosen = (name for name, entry in methods.items() if entry.part in given)
        method = next(chosen, default_method(question))
    names = {name for entry in methods.values() for name in entry.options}
    return Request(
        question,
        method,
        Budget(values["epsilon"], values["delta"]),
        given.get("alpha"),
        parts={name: given[name] for name in PARTS[question] if name in given},
        options={name: value for name, value in given.items() if name in names},
    )


def _all_groups(groups: tuple[str, str] | None, more: str | None) -> tuple[str, ...] | None:
    """Return the groups that were named: two, and others."""
    if more is None:
        return groups
    if groups is None:
        raise ParameterError("--more-groups needs --groups A B: the first two.")
    return *groups, *options.read_names(more, None, "more_groups")


def _locations(file: Path | None, drawn: int | None) -> dict[str, list[Any]] | int | None:
    """Return public locations from a file, or how many to spread over the bounds."""
    if file is not None and drawn is not None:
        raise ParameterError("pass --locations or --draw-locations, not both.")
    if file is None:
        return drawn
    from privatest.data.files import read_table  # noqa: PLC0415

    columns: dict[str, list[Any]] = read_table(file).to_pydict()
    return columns


def _is_half_a_name(place: Place) -> bool:
    """Return whether an argument is part of a column name with a space, and not a file."""
    return not any(char in place.text for char in "./*") and not place.exists()


def _require_two_groups(data: Place, other: Place, purse: Purse) -> None:
    """Refuse files that may hold the same people: each group would cost them the whole epsilon."""
    if data.same(other):
        raise ParameterError("the two files are one: everybody would be in both groups.")
    if purse.dataset is None and len(purse.datasets_of([data, other])) == 1:
        raise ParameterError(
            f"both files belong to the data set {purse.datasets_of([data])[0]!r}, so that a person "
            "may be in both. Pass --adjacency both to protect those who are, or --dataset NAME "
            "if nobody is."
        )


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
    shortened: Mapping[str, Any] | None = None,
) -> None:
    """Check the request, reserve its budget, read the files, answer, record and print.

    Parameters
    ----------
    request, files, described, purse
        The request, its files, their description, and the budget that pays.
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
        Prints the result, with the other keys of its JSON document.
    shortened : mapping, optional
        Words for the record instead of options that are tables: the names of their files.
    """
    from privatest.requests.prepare import prepare  # noqa: PLC0415
    from privatest.requests.rehearsal import rehearse, rehearse_sizes  # noqa: PLC0415

    prepared = prepare(request, described, samples=len(files))
    if plot is not None:
        check_picture(plot, request)
    if report is not None:
        check_report(report, files)
    for file in files:  # a mistyped name should not cost anything
        check_place(file, prepared.names, prepared.schema)
        if described is not None and described.id_column is not None:
            file.check([described.id_column])
    names = [name for name in prepared.names if described and name in described.columns]
    used = described.select(names) if described and names else None

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

    full = prepared.asked | dict(shortened or {})
    with spending(
        purse,
        request.budget,
        files,
        gaussian=request.gaussian,
        rehearsal=rehearsal,
        asked=public_words(request.question, request.budget, files, used) | full,
    ) as record:
        with working("Reading the data ..."):
            tables = [file.read(prepared.names, prepared.text) for file in files]
        result = _run(prepared, tables)
        receipt = record(result.to_dict() if keep is None else keep(result))
    words = prepared.words
    if len(files) > 1:
        words = f"{words}: {' and '.join(map(str, files))}"
    more = {"request": full, "files": [*map(str, files)], "ledger": receipt.to_list()}
    more |= {} if used is None else {"schema": used.to_toml()}
    with receipt.shown(as_json=as_json):
        if show is not None:
            show(result, more)
        else:
            print_result(result, compared=words, as_json=as_json, label=prepared.label, more=more)
    if plot is not None:
        draw(result, plot)
    if report is not None:
        compared = {"compared": words} if prepared.label == "compared" else {}
        write_report(result, report, more | compared | dict(about or {}))


def _count_persons(prepared: Prepared, files: Sequence[Place], described: Schema | None) -> None:
    """Refuse data in which a person has more rows than the schema says: nothing is spent yet."""
    if described is None or (who := described.id_column) is None:
        return
    from privatest.data.reading import (  # noqa: PLC0415
        check_person_rows,
        check_person_rows_in_groups,
    )

    with working("Counting rows per person ..."):
        apart, grouping = prepared.arguments.get("adjacency") == "both", prepared.grouping
        if apart and grouping is not None:
            names = [who, grouping.column]
            check_person_rows_in_groups(files[0].read(names, names), grouping, described)
        else:
            check_person_rows(
                described, [file.read([who], [who]) for file in files], together=not apart
            )


def _hint(prepared: Prepared, sizes: Sequence[int]) -> str:
    """Return a sentence on a test that would see far more at these public sizes, or nothing."""
    from privatest.planning.recommendation import better_test, column_types  # noqa: PLC0415

    request, schema, grouping = prepared.request, prepared.schema, prepared.grouping
    if request.question not in _PLANNED or request.options or "each_column" in request.parts:
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


def describe(
    path: Path | None, bounds: Sequence[str] | None, rows: int | None = None
) -> Schema | None:
    """Return the description of the columns from --schema or from --bounds."""
    if path is not None and bounds:
        raise ParameterError("pass --schema or --bounds, not both: the schema has the bounds.")
    if path is None:
        pairs = [parse_bounds(text) for text in bounds or ()]
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


def check_place(place: Place, names: Sequence[str], described: Schema | None) -> None:
    """Refuse what can be known to fail before anything is charged; no value is looked at."""
    from privatest.data.engines import check_workers  # noqa: PLC0415

    place.check(names)
    place.check_types(described)
    if place.workers is not None:
        check_workers(place.workers)


def reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say how its data is read."""
    hints = get_type_hints(command, include_extras=True)
    own = inspect.signature(command)
    kept = [p.replace(annotation=hints.get(p.name, p.annotation)) for p in own.parameters.values()]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
        for name, hint in options.READING.items()
    ]

    @wraps(command)
    def wrapped(**values: Any) -> None:
        how = {name: values.pop(name, None) for name in options.READING}
        places = {name: value for name, value in values.items() if isinstance(value, Place)}
        command(**values | _opened_places(places, **how))

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in kept] + added
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = hints | dict(options.READING)
    del wrapped.__wrapped__  # its options would not be seen
    return wrapped


def _opened_places(
    places: dict[str, Place],
    table: list[str] | None,
    query: list[str] | None,
    engine: Engine | None,
    scheduler: str | None,
    threads: int | None,
) -> dict[str, Place]:
    """Return each place with what is read there, and by which workers."""
    named = (engine, scheduler, threads)
    workers = None if named == (None,) * 3 else EngineConfig(engine or "local", threads, scheduler)
    asked = [("table", name) for name in table or ()] + [("query", text) for text in query or ()]
    bases = [name for name, place in places.items() if place.is_database]
    if asked and not bases:
        raise ParameterError(f"--{asked[0][0]} goes with the address of a database as DATA.")
    if bases and not asked:
        raise ParameterError("--table or --query must be given: what to read of the database.")
    if len(asked) not in (0, 1, len(bases)):
        raise ParameterError("--table or --query must be given once, or once for each database.")
    found = {}
    for name, place in places.items():
        what: dict[str, Any] = {}
        if name in bases:
            what = dict([asked[bases.index(name) if len(asked) > 1 else 0]])
        found[name] = replace(place, workers=workers, **what)
    return found
