"""From a request to a call: everything is checked against the public schema, nothing is read."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privatest.core.errors import ParameterError, PrivacyError
from privatest.core.privacy import Adjacency
from privatest.core.validation import integer_at_least, number
from privatest.data.categories import category_codes
from privatest.data.schema import CategoricalColumn, Schema
from privatest.questions.catalogue import such, usual
from privatest.questions.grouping import Grouping
from privatest.questions.request import Filter, Prepared, Request, named_as_asked

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = ["chosen_columns", "prepare"]

_WHY = "bounds or categories found from the data would leak it"
_FEW_POINTS = 20  # of a quick rehearsal
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
        "fit": lambda: _fit(request, schema),
        "mean": lambda: _mean(request, schema),
        "release": lambda: _release(request, schema),
    }
    return _filtered(makers[request.question](), schema)


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


def chosen_columns(
    described: Schema | None, columns: Sequence[str] | None, group: str | None = None
) -> Schema:
    """Return the schema of the columns that a test looks at."""
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
        raise ParameterError(f"{missing}: it has to be declared, because {_WHY}.").with_flags(
            _bounds_flag(name)
        )
    return described.select(names)


def _bounds_flag(name: str) -> str:
    return f"Pass --bounds {shlex.quote(name + '=LOW:HIGH')}, or --schema."


def _options(request: Request) -> dict[str, Any]:
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


def _check_statistics(request: Request, schema: Schema) -> None:
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
        grouping = Grouping.ask(group, described, groups, membership, several=several)
        membership = grouping.membership
    adjacency = _hidden(membership or "public", request.parts.get("adjacency"))
    if adjacency == "row" and request.entry.public_groups:
        raise ParameterError(
            f"method {request.method} needs public membership: {request.entry.public_groups}. "
            f"Use method {such(request.question, lambda entry: not entry.public_groups)}."
        ).with_flags(_PUBLIC)
    schema = chosen_columns(described, request.parts.get("columns"), group)
    if request.entry.one_column and (len(schema.columns) > 1 or schema.categorical_names):
        raise ParameterError(
            f"method {request.method} compares one numeric column: name it in columns. "
            f"Method {usual(request.question)} takes several, and categories."
        )
    _check_statistics(request, schema)
    names, text = list(schema.columns), list(schema.categorical_names)
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
        arguments=_options(request) | {"bounds": schema, "adjacency": adjacency},
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
    sides = chosen_columns(described, names_x), chosen_columns(described, names_y)
    both = chosen_columns(described, [*names_x, *names_y])
    _check_statistics(request, both)
    arguments: dict[str, Any] = {"bounds_x": sides[0], "bounds_y": sides[1]}
    for name, value in _options(request).items():
        if name in ("kernel", "bandwidths"):  # the same for both sides
            arguments |= {f"{name}_x": value, f"{name}_y": value}
        else:
            arguments[name] = value
    return Prepared(
        names=[*names_x, *names_y],
        text=[*sides[0].categorical_names, *sides[1].categorical_names],
        words=f"{', '.join(names_x)} and {', '.join(names_y)}",
        label="sides",
        call=lambda table: (table.select(names_x), table.select(names_y)),
        arguments=arguments,
        request=request,
        schema=both,
    )


def _paired(request: Request, described: Schema | None) -> Prepared:
    before, after = request.parts.get("before"), request.parts.get("after")
    if not before or not after or before == after:
        raise ParameterError("before and after must be two columns.")
    # x - y is the change: positive where something grew
    schema = None if described is None else chosen_columns(described, [after, before])
    return Prepared(
        names=[before, after],
        text=() if schema is None else schema.categorical_names,
        words=f"{after} - {before}",
        label="change",
        call=lambda table: (table.select([after]), table.select([before])),  # with their names
        arguments=_options(request) | {"bounds": schema},
        request=request,
        schema=schema,
    )


def _fit(request: Request, described: Schema | None) -> Prepared:
    column = request.parts.get("column")
    if not column:
        raise ParameterError("column must be given: the column to test.")
    target = _target(request)
    schema = None if described is None else chosen_columns(described, [column])
    if schema is None and "family" in request.parts:
        raise ParameterError(
            f"family needs a description of the column {column!r}, because {_WHY}."
        ).with_flags(_bounds_flag(column))
    return Prepared(
        names=[column],
        text=() if schema is None else schema.categorical_names,
        words=column,
        label="column",
        call=lambda table: (table, target),
        arguments=_options(request) | {"bounds": schema},
        request=request,
        schema=schema,
    )


def _target(request: Request) -> str:
    """Return the distribution or the family; mistakes are found before any data is read."""
    from privatest.goodness_of_fit.family import STATISTICS  # noqa: PLC0415
    from privatest.goodness_of_fit.reference_cdf import read_cdf  # noqa: PLC0415
    from privatest.statistics.families import family_named  # noqa: PLC0415

    dist, family = request.parts.get("dist"), request.parts.get("family")
    if (dist is None) == (family is None):
        raise ParameterError(
            'dist must be given, the distribution to test, "norm(0, 1)" for example; or family, '
            "for unknown location and scale, norm for example. Not both."
        ).with_flags("Pass --dist or --family.")
    if request.parts.get(request.entry.part) is None:
        raise ParameterError(f"method {request.method} needs {request.entry.part}.")
    if dist is not None:
        with named_as_asked({"dist": "cdf"}):
            read_cdf(dist)
        return str(dist)
    if request.options.get("statistic", STATISTICS[0]) not in STATISTICS:
        raise ParameterError(f"family has statistic {' or '.join(STATISTICS)}.")
    return str(family_named(family).name)


def _mean(request: Request, described: Schema | None) -> Prepared:
    schema = chosen_columns(described, request.parts.get("columns"))
    if schema.categorical_names:
        raise ParameterError(
            f"column {schema.categorical_names[0]!r} is categorical: name numeric columns."
        ).with_flags("Pass --columns NAMES.")
    return _of_columns(request, schema, "means of")


def _of_columns(request: Request, schema: Schema, label: str) -> Prepared:
    """Prepare what is asked of some columns of all rows."""
    return Prepared(
        names=list(schema.columns),
        text=schema.categorical_names,
        words=", ".join(schema.columns),
        label=label,
        call=lambda table: (table,),
        arguments=_options(request) | {"bounds": schema},
        request=request,
        schema=schema,
    )


def _release(request: Request, described: Schema | None) -> Prepared:
    from privatest.data.samples import encode_sample  # noqa: PLC0415
    from privatest.synthetic.points import check_points  # noqa: PLC0415

    schema = chosen_columns(described, request.parts.get("columns"))
    points, given = request.options.get("points"), request.options.get("public_points")
    if points is not None:
        integer_at_least("points", points, 1)
    if request.options.get("bandwidth") is not None:
        number("bandwidth", request.options["bandwidth"], above=0)
    brought = None if given is None else encode_sample(given, schema, "public_points").rows
    plain = _of_columns(request, schema, "released")

    brings = "public_points" in request.entry.options

    def check(n: int) -> None:
        if brings and points is not None and points > n:
            raise ParameterError(
                f"points must be at most the number of rows, {n}: each of them takes noise, and "
                "more points than rows cannot say more than the rows."
            )
        if brought is not None:
            check_points(brought, n)

    def call(table: pa.Table) -> tuple[pa.Table]:
        check(table.num_rows)
        return (table,)

    def quick(n: int) -> Prepared:
        check(n)
        few: dict[str, Any] = {}
        if given is not None:
            few["public_points"] = {name: values[:_FEW_POINTS] for name, values in given.items()}
        if given is None or points is not None:
            few["n_points"] = min(_FEW_POINTS, n if points is None else points)
        return replace(plain, arguments=dict(plain.arguments) | few)

    return replace(plain, call=call, quick=quick)
