"""The columns and options of a request, checked against the public schema."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from privatest.core.errors import ParameterError
from privatest.core.validation import listed
from privatest.data.schema import Schema
from privatest.questions.request import Request, named_as_asked

__all__ = [
    "WHY",
    "bounds_flag",
    "check_categorical",
    "check_statistics",
    "chosen_columns",
    "named_options",
    "outcome_column",
]

_MOST_LISTED = 30  # names in a message
WHY = "bounds or categories found from the data would leak it"


def chosen_columns(
    described: Schema | None,
    columns: Sequence[str] | None,
    group: str | None = None,
    *,
    outcomes: bool = False,
) -> Schema:
    """Return the schema of the columns that a test looks at; ``outcomes`` may be text."""
    known = [] if described is None else [name for name in described.columns if name != group]
    names = known if columns is None else columns
    if columns is not None and not columns:
        raise ParameterError("columns must name at least one column.")
    if group is not None and group in names:
        raise ParameterError(f"column {group!r} is the group; it cannot be compared as well.")
    unknown = next((name for name in names if name not in known), None)
    if described is None or unknown is not None or not names:
        name = unknown or "COLUMN"
        missing = "no column is described" if unknown is None else f"column {name!r} has no bounds"
        flags = bounds_flag(name)
        if outcomes:
            flags = f"{flags[:-1]} if it is text, with --success VALUE."
        words = f"{missing}: it has to be declared, because {WHY}."
        if unknown is not None and known:  # perhaps it is only spelled in another way
            words = f"{words} Declared are {listed(known[:_MOST_LISTED])}."
        raise ParameterError(words).with_flags(flags)
    return described.select(names)


def bounds_flag(name: str) -> str:
    """Return the flags that describe a column."""
    return f"Pass --bounds {shlex.quote(name + '=LOW:HIGH')}, or --schema."


def named_options(request: Request) -> dict[str, Any]:
    """Name options as the function does."""
    if "subtest" in request.options:
        _check_subtest(request)
    named = {request.entry.options[name]: value for name, value in request.options.items()}
    if isinstance(named.get("bandwidth"), list):
        if len(named["bandwidth"]) != 1:
            raise ParameterError(f"method {request.method} takes one bandwidth.")
        (named["bandwidth"],) = named["bandwidth"]
    if isinstance(named.get("frequencies"), Mapping):  # a table: one row for each frequency
        named["frequencies"] = list(zip(*named["frequencies"].values(), strict=True))
    return named


def _check_subtest(request: Request) -> None:
    """Refuse a subtest that answers another question."""
    from privatest.any_test.subtests import scheme_of  # noqa: PLC0415

    subtest = request.options["subtest"]
    with named_as_asked(request.entry.options):
        answers = scheme_of(subtest, None)
    if answers != request.question:
        raise ParameterError(
            f"subtest {subtest!r} is for the question {answers}, not for {request.question}."
        )


def check_statistics(request: Request, schema: Schema) -> None:
    """Refuse members of a family that there are not, or not for these columns."""
    if "statistics" not in request.options:
        return
    from privatest.independence.plan import NAMES  # noqa: PLC0415
    from privatest.statistics.portfolio import (  # noqa: PLC0415
        check_bandwidths,
        chosen_statistics,
        named_statistics,
    )

    asked = request.options["statistics"]
    named: tuple[str, ...]
    if request.question == "independence":
        named = named_statistics(asked, NAMES)
    else:
        named = chosen_statistics(asked, schema.domain, kernel_only=False)
    if request.options.get("bandwidths") is not None:
        check_bandwidths(named)


def outcome_column(request: Request, schema: Schema) -> Schema:
    """Check the one column of outcomes; whatever values it has, reading it cannot fail."""
    from privatest.tables.outcomes import check_success  # noqa: PLC0415

    if len(schema.columns) > 1:
        raise ParameterError(
            f"method {request.method} looks at one column: name it in columns."
        ).with_flags("Pass --columns NAME.")
    try:
        check_success(schema, request.options.get("success"))
    except ParameterError as error:
        raise error.with_flags("Pass --success VALUE.") from None
    return schema


def check_categorical(request: Request, *sides: Schema) -> None:
    """Refuse columns that a test of categories cannot count."""
    if not request.entry.categorical:
        return
    for side in sides:
        if len(side.columns) > 1 or not side.categorical_names:
            raise ParameterError(
                f"method {request.method} takes one categorical column"
                f"{' on each side' * (len(sides) > 1)}: describe its categories in the schema."
            ).with_flags("Pass --schema.")
