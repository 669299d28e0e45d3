"""Options that say how a command's data is read: what of a database, and by whom."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from privatest.core.errors import ParameterError
from privatest.data.place import Place
from privatest.data.source import Engine, Workers

if TYPE_CHECKING:
    from privatest.data.schema import Schema

__all__ = ["DataFile", "OtherFile", "check", "reading"]

DataFile = Annotated[
    Place,
    typer.Argument(
        metavar="DATA",
        parser=Place,
        help="CSV, Parquet, Arrow or Feather file, a folder or a pattern of them (in quotes), or "
        "the address of a database.",
        show_default=False,
    ),
]
OtherFile = Annotated[
    Place | None,
    typer.Argument(
        metavar="OTHER",
        parser=Place,
        help="Second file, where each sample has a file of its own.",
        show_default=False,
    ),
]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="NAME",
        help="Table of the database that DATA is the address of; repeat it for that of OTHER.",
        rich_help_panel="Data",
        show_default=False,
    ),
]
Queries = Annotated[
    list[str] | None,
    typer.Option(
        "--query",
        metavar="SQL",
        help="SELECT statement in place of a table; its answer is held in memory.",
        rich_help_panel="Data",
        show_default=False,
    ),
]
EngineOption = Annotated[
    Engine | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Who reads large data: threads of this process (local), or a Dask cluster (dask).",
        rich_help_panel="Large data",
        show_default="local",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Of the Dask cluster, such as tcp://host:8786.",
        rich_help_panel="Large data",
        show_default="a cluster on this machine",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="NUMBER",
        min=1,
        help="Threads of the local engine, or Dask workers that are started here.",
        rich_help_panel="Large data",
        show_default="one for each processor",
    ),
]


def check(place: Place, names: Sequence[str], described: Schema | None) -> None:
    """Refuse what can be known to fail before anything is charged; no value is looked at."""
    from privatest.engines.cluster import check as check_workers  # noqa: PLC0415

    place.check(names)
    place.check_types(described)
    if place.workers is not None:
        check_workers(place.workers)


def reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say how its places are read."""
    hints = get_type_hints(command, include_extras=True)
    options: dict[str, Any] = {
        "table": Tables,
        "query": Queries,
        "engine": EngineOption,
        "scheduler": Scheduler,
        "threads": Threads,
    }
    own = inspect.signature(command)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in options.items()
    ]
    given = [p.replace(annotation=hints.get(p.name, p.annotation)) for p in own.parameters.values()]

    @wraps(command)
    def wrapped(*arguments: Any, **named: Any) -> None:
        how = {name: named.pop(name, None) for name in options}
        bound = own.bind(*arguments, **named)
        bound.apply_defaults()
        values = bound.arguments
        places = {name: v for name, v in values.items() if isinstance(v, Place)}
        values.update(_bound(places, **how))
        command(*bound.args, **bound.kwargs)

    wrapped.__signature__ = own.replace(parameters=[*given, *added])  # type: ignore[attr-defined]
    wrapped.__annotations__ = hints | options
    del wrapped.__wrapped__  # its options would not be seen
    return wrapped


def _bound(
    places: dict[str, Place],
    table: list[str] | None,
    query: list[str] | None,
    engine: Engine | None,
    scheduler: str | None,
    threads: int | None,
) -> dict[str, Place]:
    """Tell each place what is read there, and by whom."""
    who = (engine, scheduler, threads)
    workers = None if who == (None,) * 3 else Workers(engine or "local", threads, scheduler)
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
        found[name] = replace(place, workers=workers, _opened={}, **what)
    return found
