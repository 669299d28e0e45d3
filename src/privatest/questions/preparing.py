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
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
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
    columns = request.parts.get("columns")
    if request.entry.unbounded and described is None and columns is not None:
        schema, names, text = None, list(columns), []
    else:
        schema = chosen_columns(described, columns, group)
        names, text = list(schema.columns), list(schema.categorical_names)
    if request.entry.one_column and (len(names) > 1 or text):
        raise ParameterError(
            f"method {request.method} compares one numeric column: name it in columns. "
            f"Method {usual(request.question)} takes several, and categories."
        )
    if schema is not None and request.entry.outcomes:
        schema = _outcomes(request, schema)
        names, text = list(schema.columns), list(schema.categorical_names)
    if schema is not None:
        _check_statistics(request, schema)
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


def _outcomes(request: Request, schema: Schema) -> Schema:
    """Check the one column of outcomes; where nobody names a success it holds 0 and 1 only."""
    from privatest.tables.outcomes import check_success  # noqa: PLC0415

    if len(schema.columns) > 1:
        raise ParameterError(
            f"method {request.method} looks at one column: name it in columns."
        ).with_flags("Pass --columns NAME.")
    success = request.options.get("success")
    try:
        check_success(schema, success)
    except ParameterError as error:
        raise error.with_flags("Pass --success VALUE.") from None
    ((name, column),) = schema.columns.items()
    if success is None and isinstance(column, NumericColumn):
        return replace(schema, columns={name: replace(column, integer=True)})
    return schema


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
    sides = chosen_columns(described, names_x), chosen_columns(described, names_y)
    both = chosen_columns(described, [*names_x, *names_y])
    if request.entry.one_column and (len(both.columns) > 2 or both.categorical_names):
        raise ParameterError(
            f"method {request.method} takes one numeric column on each side. "
            f"Method {usual(request.question)} takes several, and categories."
        )
    _check_categorical(request, *sides)
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


def _check_categorical(request: Request, *sides: Schema) -> None:
    """Refuse columns that a test of categories cannot count."""
    if not request.entry.categorical:
        return
    for side in sides:
        if len(side.columns) > 1 or not side.categorical_names:
            raise ParameterError(
                f"method {request.method} takes one categorical column"
                f"{' on each side' * (len(sides) > 1)}: describe its categories in the schema."
            ).with_flags("Pass --schema.")


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
        arguments=_options(request) | {f"bounds_{side}": own for side, own in schemas.items()},
        request=request,
        schema=chosen_columns(described, every),
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
    given = [part for part in ("dist", "family", "shares") if part in request.parts]
    if len(given) != 1:
        raise ParameterError(
            'dist must be given, the distribution to test, "norm(0, 1)" for example; or family, '
            "for unknown location and scale, norm for example; or shares, for categories. "
            "Only one of them."
        ).with_flags("Pass --dist, --family or --shares.")
    if request.entry.part not in given:
        raise ParameterError(f"method {request.method} needs {request.entry.part}.")
    schema = None if described is None else chosen_columns(described, [column])
    if schema is None and given != ["dist"]:
        raise ParameterError(
            f"{given[0]} needs a description of the column {column!r}, because {_WHY}."
        ).with_flags(_bounds_flag(column) if given == ["family"] else "Pass --schema.")
    target = _target(request, schema)
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


def _target(request: Request, schema: Schema | None) -> str | dict[str, float] | None:
    """Return the distribution, the family or the shares; mistakes are found before data is read."""
    from privatest.goodness_of_fit.family import STATISTICS  # noqa: PLC0415
    from privatest.goodness_of_fit.reference_cdf import read_cdf  # noqa: PLC0415
    from privatest.statistics.families import family_named  # noqa: PLC0415

    dist, family = request.parts.get("dist"), request.parts.get("family")
    if dist is not None:
        with named_as_asked({"dist": "cdf"}):
            read_cdf(dist)
        if "(" not in dist:  # SciPy would take the standard one, which is hardly ever meant
            raise ParameterError(
                f'dist must have its parameters: "{dist}(...)" with location and scale, as in '
                "scipy.stats; or family, where they are unknown."
            ).with_flags(f"Pass --family {dist} for unknown location and scale.")
        return str(dist)
    if family is None and schema is not None:
        _check_categorical(request, schema)
        return _shares(request.parts["shares"], schema)
    if request.options.get("statistic", STATISTICS[0]) not in STATISTICS:
        raise ParameterError(f"family has statistic {' or '.join(STATISTICS)}.")
    return str(family_named(family).name)


def _shares(text: str, schema: Schema) -> dict[str, float] | None:
    """Read "A=0.2,B=0.8", or "equal"; checked against the categories."""
    from privatest.tables.fit import expected_shares  # noqa: PLC0415

    if text == "equal":
        return None
    found: dict[str, float] = {}
    for entry in text.split(","):
        name, _, share = entry.rpartition("=")
        try:
            found[name.strip()] = float(share)
        except ValueError:
            raise ParameterError(
                'shares must be "equal", or a share for each category such as "A=0.2,B=0.8".'
            ) from None
    (column,) = schema.columns.values()
    assert isinstance(column, CategoricalColumn)
    with named_as_asked({"shares": "f_exp"}):
        expected_shares(found, column.categories)
    return found


def _mean(request: Request, described: Schema | None) -> Prepared:
    schema = chosen_columns(described, request.parts.get("columns"))
    if request.entry.outcomes:
        return _of_columns(request, _outcomes(request, schema), "share in")
    if schema.categorical_names:
        raise ParameterError(
            f"column {schema.categorical_names[0]!r} is categorical: name numeric columns, or use "
            f"method {such(request.question, lambda entry: entry.outcomes)} for one of its shares."
        ).with_flags("Pass --columns NAMES, or --method.")
    if request.entry.one_column and len(schema.columns) > 1:
        raise ParameterError(
            f"method {request.method} takes one numeric column: name it in columns."
        ).with_flags("Pass --columns NAME.")
    return _of_columns(request, schema, "column" if request.entry.one_column else "means of")


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
