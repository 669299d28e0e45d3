"""From a request to a call: everything is checked against the public schema, nothing is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privatest.core.errors import ParameterError, PrivacyError
from privatest.core.privacy import Adjacency
from privatest.core.validation import integer_at_least, listed, number
from privatest.data.reading import Grouping
from privatest.data.schema import CategoricalColumn, Schema, category_codes
from privatest.requests.catalogue import default_method, methods_where
from privatest.requests.request import Filter, Prepared, PreparedEach, Request, renamed_options

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_LISTED = 30  # names in a message
_WHY = "bounds or categories found from the data would leak it"
_PUBLIC = {"membership": "public"}  # if everybody may know who is in which group
_FEW_POINTS = 20  # of a quick rehearsal


def prepare(request: Request, schema: Schema | None, *, samples: int = 1) -> Prepared:
    """Check a request against what is public.

    Parameters
    ----------
    request : Request
        The request.
    schema : Schema or None
        The public description of the columns.
    samples : int
        Number of tables that will be passed: 2 where each sample has its own.
    """
    if "each_column" in request.parts:
        return _each_column(request, schema, samples)
    if request.question == "two-sample":
        return _filtered(_two_sample(request, schema, samples), schema)
    return _filtered(_PREPARE[request.question](request, schema), schema)


def _each_column(request: Request, schema: Schema | None, samples: int) -> Prepared:
    """Prepare a request for each of several columns, which share the budget equally."""
    names = request.parts.get("columns")
    if names is None:
        names = tuple(chosen_columns(schema, None, request.parts.get("group")).columns)
    if len(set(names)) < max(2, len(names)):
        raise ParameterError("columns", "must name at least two different columns for each_column")
    if request.options.get("release", "pvalue") == "decision":
        raise ParameterError(
            "each_column", "needs p-values: decisions cannot be adjusted. Leave out release"
        )
    share = request.budget.divided(len(names))
    rest = {name: value for name, value in request.parts.items() if name != "each_column"}
    columns = {}
    for name in names:
        one = replace(request, budget=share, parts=rest | {"columns": [name]})
        columns[name] = prepare(one, schema, samples=samples)
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
        raise ParameterError("where", f"cannot be used: column {name!r} is not in the schema")
    if not isinstance(column, CategoricalColumn) or column.membership != "public":
        raise PrivacyError(
            f"where: column {name!r} is private, so it cannot select rows: the number of rows that "
            "pass is not hidden. Only a categorical column with "
            'membership = "public" in the schema can.'
        )
    codes = category_codes(column.categories)
    unknown = next((label for label in labels if label not in codes), None)
    if unknown is not None:
        raise ParameterError(
            "where", f"cannot be used: {unknown!r} is not a category of column {name!r}"
        )
    return Filter(schema.select([name]), frozenset(codes[label] for label in labels))


def _two_sample(request: Request, described: Schema | None, samples: int) -> Prepared:
    group, groups = request.parts.get("group"), request.parts.get("groups")
    if samples == 1 and group is None:
        raise ParameterError(
            "group",
            "must be given: the column that says which sample a row is in",
            remedy={"group": "", "other": ""},
        )
    if samples == 2 and (group is not None or groups is not None):
        raise ParameterError("group and groups split one file; here are two.")
    membership, grouping = request.parts.get("membership"), None
    if group is not None:
        several = request.entry.several
        if groups is not None and len(groups) > 2 and not several:
            raise ParameterError(
                "groups",
                f"must be a list of two: method {request.method} compares two groups. For more "
                f"use method {methods_where(request.question, lambda entry: entry.several)}",
            )
        grouping = Grouping.ask(group, described, groups, membership, several=several)
        membership = grouping.membership
    adjacency = _hidden(membership or "public", request.parts.get("adjacency"))
    if adjacency == "row" and request.entry.public_groups:
        raise ParameterError(
            f"method {request.method} needs public membership: {request.entry.public_groups}. "
            f"Use method {methods_where(request.question, lambda entry: not entry.public_groups)}.",
            remedy=_PUBLIC,
        )
    columns = request.parts.get("columns")
    if request.entry.unbounded and described is None and columns is not None:
        schema, names, text = None, list(columns), []
    else:
        schema = chosen_columns(described, columns, group, outcomes=request.entry.outcomes)
        names, text = list(schema.columns), list(schema.categorical_names)
    if request.entry.one_column and (len(names) > 1 or text):
        raise ParameterError(
            f"method {request.method} compares one numeric column: name it in columns. "
            f"Method {default_method(request.question)} takes several, and categories."
        )
    if schema is not None:
        if request.entry.outcomes:
            _check_outcomes(request, schema)
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
        arguments=_named_options(request) | {"bounds": schema, "adjacency": adjacency},
        request=request,
        schema=schema,
        grouping=grouping,
    )


def _hidden(membership: str, adjacency: Adjacency | None) -> Adjacency:
    """Return the adjacency; it has to hide private groups."""
    if membership == "public":
        return adjacency or "one"
    if adjacency not in (None, "row"):
        raise PrivacyError(
            f"adjacency {adjacency} needs public membership: group sizes would leak. Use row.",
            remedy=_PUBLIC,
        )
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
        _check_categorical(request, *sides)
        _check_statistics(request, both)
    if request.entry.one_column and (len(names) > 2 or text):
        raise ParameterError(
            f"method {request.method} takes one numeric column on each side. "
            f"Method {default_method(request.question)} takes several, and categories."
        )
    arguments: dict[str, Any] = {"bounds_x": sides[0], "bounds_y": sides[1]}
    for name, value in _named_options(request).items():
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
            "given",
            f"does not go with method {request.method}. "
            f"Use method {methods_where(request.question, lambda entry: entry.part)}",
        )
    if not names or {*names} & {*names_x, *names_y}:
        raise ParameterError("given", "must name columns other than those of x and y")
    parts = {"x": names_x, "y": names_y, "z": names}
    schemas = {side: chosen_columns(described, own) for side, own in parts.items()}
    for side in ("x", "y"):
        if len(parts[side]) > 1 or schemas[side].categorical_names:
            raise ParameterError(side, "must be one numeric column where others are given")
    every = [*names_x, *names_y, *names]
    return Prepared(
        names=every,
        text=schemas["z"].categorical_names,
        words=f"{names_x[0]} and {names_y[0]}, given {', '.join(names)}",
        label="sides",
        call=lambda table: tuple(table.select(own) for own in parts.values()),
        arguments=_named_options(request)
        | {f"bounds_{side}": own for side, own in schemas.items()},
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
        arguments=_named_options(request) | {"bounds": schema},
        request=request,
        schema=schema,
    )


def _fit(request: Request, described: Schema | None) -> Prepared:
    """Check a request whether a column follows a distribution, a family or shares."""
    column = request.parts.get("column")
    if not column:
        raise ParameterError("column", "must be given: the column to test")
    given = [part for part in ("dist", "family", "shares") if part in request.parts]
    if len(given) != 1:
        raise ParameterError(
            "dist",
            'must be given, the distribution to test, "norm(0, 1)" for example; or family, for '
            "unknown location and scale, norm for example; or shares, for categories. Only one of "
            "them",
            remedy={"dist": "", "family": "", "shares": ""},
        )
    if request.entry.part not in given:
        raise ParameterError(f"method {request.method} needs {request.entry.part}.")
    schema = None if described is None else chosen_columns(described, [column])
    if schema is None and given != ["dist"]:
        raise ParameterError(
            given[0],
            f"needs a description of the column {column!r}, because {_WHY}",
            remedy=_description(column) if given == ["family"] else {"schema": ""},
        )
    target = _target(request, schema)
    return Prepared(
        names=[column],
        text=() if schema is None else schema.categorical_names,
        words=column,
        label="column",
        call=lambda table: (table, target),
        arguments=_named_options(request) | {"bounds": schema},
        request=request,
        schema=schema,
    )


def _target(request: Request, schema: Schema | None) -> str | dict[str, float] | None:
    """Return the distribution, the family or the shares, checked."""
    from privatest.methods.fit_families import (  # noqa: PLC0415
        STATISTICS,
        family_named,
    )
    from privatest.methods.ks import read_cdf  # noqa: PLC0415

    dist, family = request.parts.get("dist"), request.parts.get("family")
    if dist is not None:
        with renamed_options({"dist": "cdf"}):
            read_cdf(dist)
        if "(" not in dist:  # SciPy would take the standard one, which is hardly ever meant
            raise ParameterError(
                "dist",
                f'must have its parameters: "{dist}(...)" with location and scale, as in '
                "scipy.stats; or family, where they are unknown",
                remedy={"family": dist},
            )
        return str(dist)
    if family is None and schema is not None:
        _check_categorical(request, schema)
        return _shares(request.parts["shares"], schema)
    if request.options.get("statistic", STATISTICS[0]) not in STATISTICS:
        raise ParameterError("statistic", f"must be {' or '.join(STATISTICS)} with family")
    return str(family_named(family).name)


def _shares(text: str, schema: Schema) -> dict[str, float] | None:
    """Read "A=0.2,B=0.8" or "equal", and check it against the categories."""
    from privatest.methods.tables import expected_shares  # noqa: PLC0415

    if text == "equal":
        return None
    shares: dict[str, float] = {}
    for entry in text.split(","):
        name, _, share = entry.rpartition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            raise ParameterError(
                "shares", 'must be "equal", or a share for each category such as "A=0.2,B=0.8"'
            ) from None
    (column,) = schema.columns.values()
    assert isinstance(column, CategoricalColumn)
    with renamed_options({"shares": "f_exp"}):
        expected_shares(shares, column.categories)
    return shares


def _mean(request: Request, described: Schema | None) -> Prepared:
    """Check a request for means, a share or a quantile."""
    outcomes = request.entry.outcomes
    schema = chosen_columns(described, request.parts.get("columns"), outcomes=outcomes)
    if outcomes:
        _check_outcomes(request, schema)
        return _of_columns(request, schema, "share in")
    if schema.categorical_names:
        raise ParameterError(
            f"column {schema.categorical_names[0]!r} is categorical: name numeric columns, or for "
            f"one of its shares use method "
            f"{methods_where(request.question, lambda entry: entry.outcomes)}.",
            remedy={"columns": "", "method": ""},
        )
    if request.entry.one_column and len(schema.columns) > 1:
        raise ParameterError(
            f"method {request.method} takes one numeric column: name it in columns.",
            remedy={"columns": ""},
        )
    return _of_columns(request, schema, "column" if request.entry.one_column else "means of")


def _of_columns(request: Request, schema: Schema, label: str) -> Prepared:
    """Prepare a question about some columns of all rows."""
    return Prepared(
        names=list(schema.columns),
        text=schema.categorical_names,
        words=", ".join(schema.columns),
        label=label,
        call=lambda table: (table,),
        arguments=_named_options(request) | {"bounds": schema},
        request=request,
        schema=schema,
    )


def _release(request: Request, described: Schema | None) -> Prepared:
    """Check a request for synthetic rows."""
    from privatest.data.encoding import encode_sample  # noqa: PLC0415
    from privatest.synthetic.embedding import check_points  # noqa: PLC0415

    schema = chosen_columns(described, request.parts.get("columns"))
    points, given = request.options.get("points"), request.options.get("public_points")
    if points is not None:
        integer_at_least("points", points, 1)
    if request.options.get("bandwidth") is not None:
        number("bandwidth", request.options["bandwidth"], above=0)
    public = None if given is None else encode_sample(given, schema, "public_points").rows
    plain = _of_columns(request, schema, "released")
    takes_points = "public_points" in request.entry.options

    def check(n: int) -> None:
        if takes_points and points is not None and points > n:
            raise ParameterError(
                "points",
                f"must be at most the number of rows, {n}: each of them takes noise, and more "
                "points than rows cannot say more than the rows",
            )
        if public is not None:
            check_points(public, n)

    def call(table: pa.Table) -> tuple[pa.Table]:
        check(len(table))
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


def chosen_columns(
    described: Schema | None,
    columns: Sequence[str] | None,
    group: str | None = None,
    *,
    outcomes: bool = False,
) -> Schema:
    """Return the schema of the chosen columns, by default all; ``outcomes`` may be text."""
    known = [] if described is None else [name for name in described.columns if name != group]
    names = known if columns is None else columns
    if columns is not None and not columns:
        raise ParameterError("columns", "must name at least one column")
    if group is not None and group in names:
        raise ParameterError(f"column {group!r} is the group; it cannot be compared as well.")
    unknown = next((name for name in names if name not in known), None)
    if described is not None and unknown is None and names:
        return described.select(names)
    missing = "no column is described" if unknown is None else f"column {unknown!r} has no bounds"
    words = f"{missing}: it has to be declared, because {_WHY}."
    if unknown is not None and known:  # perhaps it is misspelled
        words = f"{words} Declared are {listed(known[:_MOST_LISTED])}."
    if outcomes:
        words = f"{words} Text needs a schema, and success: the value that is one."
    raise ParameterError(words, remedy=_description(unknown or "COLUMN"))


def _description(column: str) -> dict[str, str]:
    """Return the arguments that describe a column."""
    return {"bounds": f"{column}=LOW:HIGH", "schema": ""}


def _named_options(request: Request) -> dict[str, Any]:
    """Return options by the names of the function's parameters."""
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
    """Refuse a subtest of another question."""
    from privatest.methods.subsample import scheme_of  # noqa: PLC0415

    subtest = request.options["subtest"]
    with renamed_options(request.entry.options):
        question = scheme_of(subtest, None)
    if question != request.question:
        raise ParameterError(
            "subtest", f"{subtest!r} is for the question {question}, not for {request.question}"
        )


def _check_statistics(request: Request, schema: Schema) -> None:
    """Refuse statistics that do not exist, or do not suit these columns."""
    if "statistics" not in request.options:
        return
    from privatest.numerics.independence import NAMES  # noqa: PLC0415
    from privatest.numerics.portfolio import check_bandwidths, chosen_statistics, named_statistics  # noqa: PLC0415

    statistics = request.options["statistics"]
    names: tuple[str, ...]
    if request.question == "independence":
        names = named_statistics(statistics, NAMES)
    else:
        names = chosen_statistics(statistics, schema.domain, kernel_only=False)
    if request.options.get("bandwidths") is not None:
        check_bandwidths(names)


def _check_outcomes(request: Request, schema: Schema) -> None:
    """Check the one column of outcomes, so that reading it cannot fail, whatever its values."""
    from privatest.methods.proportions import check_success  # noqa: PLC0415

    if len(schema.columns) > 1:
        raise ParameterError(
            f"method {request.method} looks at one column: name it in columns.",
            remedy={"columns": ""},
        )
    try:
        check_success(schema, request.options.get("success"))
    except ParameterError as error:
        error.remedy = {"success": ""}
        raise


def _check_categorical(request: Request, *sides: Schema) -> None:
    """Refuse columns that a test of categories cannot count."""
    if not request.entry.categorical:
        return
    for side in sides:
        if len(side.columns) > 1 or not side.categorical_names:
            raise ParameterError(
                f"method {request.method} takes one categorical column"
                f"{' on each side' * (len(sides) > 1)}: describe its categories in the schema.",
                remedy={"schema": ""},
            )


_PREPARE: Mapping[str, Callable[[Request, Schema | None], Prepared]] = {
    "independence": _independence,
    "paired": _paired,
    "fit": _fit,
    "mean": _mean,
    "release": _release,
}
