"""From a request to a call: everything is checked against the public schema, nothing is read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privatest.core.errors import ParameterError, PrivacyError
from privatest.core.privacy import Adjacency
from privatest.data.categories import category_codes
from privatest.data.grouping import Grouping
from privatest.data.schema import CategoricalColumn, Schema
from privatest.questions.catalogue import such, usual
from privatest.questions.columns import (
    check_categorical,
    check_statistics,
    chosen_columns,
    named_options,
    outcome_column,
)
from privatest.questions.preparing_columns import prepare_fit, prepare_mean, prepare_release
from privatest.questions.request import Filter, Prepared, Request

if TYPE_CHECKING:
    pass


__all__ = ["prepare"]

_PUBLIC = "Or pass --membership public, if everybody may know who is in which group."


def prepare(request: Request, schema: Schema | None, *, samples: int = 1) -> Prepared:
    """Check a request against what is public.

    Parameters
    ----------
    request : Request
        What is asked.
    schema : Schema or None
        The public description of the columns.
    samples : int
        Number of tables that will be passed: 2 where each sample has its own.
    """
    makers = {
        "two-sample": lambda: _two_sample(request, schema, samples),
        "independence": lambda: _independence(request, schema),
        "paired": lambda: _paired(request, schema),
        "fit": lambda: prepare_fit(request, schema),
        "mean": lambda: prepare_mean(request, schema),
        "release": lambda: prepare_release(request, schema),
    }
    if "each_column" in request.parts:
        return prepare_each(request, schema, samples)
    return _filtered(makers[request.question](), schema)


def prepare_each(request: Request, schema: Schema | None, samples: int) -> Prepared:
    """Check a request for each of several columns: a budget for all, in equal shares."""
    from privatest.questions.each_column import PreparedEach, one_for_each  # noqa: PLC0415

    names = request.parts.get("columns")
    if names is None:
        names = tuple(chosen_columns(schema, None, request.parts.get("group")).columns)
    requests = one_for_each(request, names)
    columns = {name: prepare(each, schema, samples=samples) for name, each in requests.items()}
    return PreparedEach.gather(request, columns, schema)


def _filtered(prepared: Prepared, schema: Schema | None) -> Prepared:
    """Add the filter of a request."""
    where = prepared.request.where
    if not where:
        return prepared
    filters = {name: _filter(name, labels, schema) for name, labels in where.items()}
    words = " and ".join(f"{name} = {' or '.join(labels)}" for name, labels in where.items())
    return replace(prepared, filters=filters, words=f"{prepared.words}; where {words}")


def _filter(name: str, labels: tuple[str, ...], schema: Schema | None) -> Filter:
    """Return which categories pass; only a public column may decide that."""
    column = None if schema is None else schema.columns.get(name)
    if schema is None or column is None:
        raise ParameterError(f"where: column {name!r} is not in the schema.")
    if not isinstance(column, CategoricalColumn) or column.membership != "public":
        raise PrivacyError(
            f"where: column {name!r} is private, so it cannot choose rows: how many pass would "
            "tell who does, and that number is not hidden. Only a categorical column with "
            'membership = "public" in the schema can.'
        )
    codes = category_codes(column.categories)
    unknown = next((label for label in labels if label not in codes), None)
    if unknown is not None:
        raise ParameterError(f"where: {unknown!r} is not a category of column {name!r}.")
    return Filter(schema.select([name]), frozenset(codes[label] for label in labels))


def _two_sample(request: Request, described: Schema | None, samples: int) -> Prepared:
    group, groups = request.parts.get("group"), request.parts.get("groups")
    if samples == 1 and group is None:
        raise ParameterError(
            "group must be given: the column that says which sample a row is in."
        ).with_flags("Pass --group COLUMN, or a second file.")
    if samples == 2 and (group is not None or groups is not None):
        raise ParameterError("group and groups split one file; here are two.")
    membership, grouping = request.parts.get("membership"), None
    if group is not None:
        several = request.entry.several
        if groups is not None and len(groups) > 2 and not several:
            raise ParameterError(
                f"method {request.method} compares two groups: groups must be a list of two. For "
                f"more use method {such(request.question, lambda entry: entry.several)}."
            ).with_flags("Or leave out --more-groups.")
        grouping = Grouping.ask(group, described, groups, membership, several=several)
        membership = grouping.membership
    adjacency = _hidden(membership or "public", request.parts.get("adjacency"))
    if adjacency == "row" and request.entry.public_groups:
        raise ParameterError(
            f"method {request.method} needs public membership: {request.entry.public_groups}. "
            f"Use method {such(request.question, lambda entry: not entry.public_groups)}."
        ).with_flags(_PUBLIC)
    columns = request.parts.get("columns")
    if request.entry.unbounded and described is None and columns is not None:
        schema, names, text = None, list(columns), []
    else:
        schema = chosen_columns(described, columns, group, outcomes=request.entry.outcomes)
        names, text = list(schema.columns), list(schema.categorical_names)
    if request.entry.one_column and (len(names) > 1 or text):
        raise ParameterError(
            f"method {request.method} compares one numeric column: name it in columns. "
            f"Method {usual(request.question)} takes several, and categories."
        )
    if schema is not None and request.entry.outcomes:
        schema = outcome_column(request, schema)
        names, text = list(schema.columns), list(schema.categorical_names)
    if schema is not None:
        check_statistics(request, schema)
    words = ", ".join(names)
    if grouping is not None:
        names, text = [*names, grouping.column], [*text, grouping.column]
        words = f"{words}: {grouping.words}"
    return Prepared(
        names=names,
        text=text,
        words=words,
        label="compared",
        call=(lambda *tables: tables) if grouping is None else grouping.split,
        arguments=named_options(request) | {"bounds": schema, "adjacency": adjacency},
        request=request,
        schema=schema,
        grouping=grouping,
    )


def _hidden(membership: str, adjacency: Adjacency | None) -> Adjacency:
    """Return the adjacency, which has to hide the group where that is private."""
    if membership == "public":
        return adjacency or "one"
    if adjacency not in (None, "row"):
        raise PrivacyError(
            f"adjacency {adjacency} needs public membership: group sizes would leak. Use row."
        ).with_flags(_PUBLIC)
    return "row"


def _independence(request: Request, described: Schema | None) -> Prepared:
    names_x, names_y = (list(request.parts.get(side, ())) for side in ("x", "y"))
    if not names_x or not names_y:
        raise ParameterError("x and y must be given: the columns of the two sides.")
    if set(names_x) & set(names_y):
        raise ParameterError("x and y must not share a column: it depends on itself.")
    if request.parts.get("given") or request.entry.part:
        return _given(request, described, names_x, names_y)
    names, text = [*names_x, *names_y], []
    sides: tuple[Schema | None, Schema | None] = (None, None)
    both = None
    if described is not None or not request.entry.unbounded:
        sides = chosen_columns(described, names_x), chosen_columns(described, names_y)
        both = chosen_columns(described, names)
        text = list(both.categorical_names)
        check_categorical(request, *sides)
        check_statistics(request, both)
    if request.entry.one_column and (len(names) > 2 or text):
        raise ParameterError(
            f"method {request.method} takes one numeric column on each side. "
            f"Method {usual(request.question)} takes several, and categories."
        )
    arguments: dict[str, Any] = {"bounds_x": sides[0], "bounds_y": sides[1]}
    for name, value in named_options(request).items():
        if name in ("kernel", "bandwidths"):  # the same for both sides
            arguments |= {f"{name}_x": value, f"{name}_y": value}
        else:
            arguments[name] = value
    return Prepared(
        names=names,
        text=text,
        words=f"{', '.join(names_x)} and {', '.join(names_y)}",
        label="sides",
        call=lambda table: (table.select(names_x), table.select(names_y)),
        arguments=arguments,
        request=request,
        schema=both,
    )


def _given(
    request: Request, described: Schema | None, names_x: list[str], names_y: list[str]
) -> Prepared:
    """Prepare a test of independence given other columns."""
    names = list(request.parts.get("given", ()))
    if not request.entry.part:
        raise ParameterError(
            f"given does not go with method {request.method}. "
            f"Use method {such(request.question, lambda entry: entry.part)}."
        )
    if not names or {*names} & {*names_x, *names_y}:
        raise ParameterError("given must name columns other than those of x and y.")
    parts = {"x": names_x, "y": names_y, "z": names}
    schemas = {side: chosen_columns(described, own) for side, own in parts.items()}
    for side in ("x", "y"):
        if len(parts[side]) > 1 or schemas[side].categorical_names:
            raise ParameterError(f"{side} must be one numeric column where others are given.")
    every = [*names_x, *names_y, *names]
    return Prepared(
        names=every,
        text=schemas["z"].categorical_names,
        words=f"{names_x[0]} and {names_y[0]}, given {', '.join(names)}",
        label="sides",
        call=lambda table: tuple(table.select(own) for own in parts.values()),
        arguments=named_options(request) | {f"bounds_{side}": own for side, own in schemas.items()},
        request=request,
        schema=chosen_columns(described, every),
    )


def _paired(request: Request, described: Schema | None) -> Prepared:
    before, after = request.parts.get("before"), request.parts.get("after")
    if not before or not after or before == after:
        raise ParameterError("before and after must be two columns.")
    # x - y is the change: positive where something grew
    free = described is None and request.entry.unbounded
    schema = None if free else chosen_columns(described, [after, before])
    return Prepared(
        names=[before, after],
        text=() if schema is None else schema.categorical_names,
        words=f"{after} - {before}",
        label="change",
        call=lambda table: (table.select([after]), table.select([before])),  # with their names
        arguments=named_options(request) | {"bounds": schema},
        request=request,
        schema=schema,
    )
