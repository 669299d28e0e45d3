"""What is asked of columns of all rows: does one fit, what is its mean, a release of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privatest.core.errors import ParameterError
from privatest.core.validation import integer_at_least, number
from privatest.data.schema import CategoricalColumn, Schema
from privatest.questions.catalogue import such
from privatest.questions.columns import (
    WHY,
    bounds_flag,
    check_categorical,
    chosen_columns,
    named_options,
    outcome_column,
)
from privatest.questions.request import Prepared, Request, named_as_asked

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["prepare_fit", "prepare_mean", "prepare_release"]

_FEW_POINTS = 20  # of a quick rehearsal


def prepare_fit(request: Request, described: Schema | None) -> Prepared:
    """Check a request whether a column follows a distribution, a family or shares."""
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
            f"{given[0]} needs a description of the column {column!r}, because {WHY}."
        ).with_flags(bounds_flag(column) if given == ["family"] else "Pass --schema.")
    target = _target(request, schema)
    return Prepared(
        names=[column],
        text=() if schema is None else schema.categorical_names,
        words=column,
        label="column",
        call=lambda table: (table, target),
        arguments=named_options(request) | {"bounds": schema},
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
        check_categorical(request, schema)
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


def prepare_mean(request: Request, described: Schema | None) -> Prepared:
    """Check a request for means, a share or a quantile."""
    outcomes = request.entry.outcomes
    schema = chosen_columns(described, request.parts.get("columns"), outcomes=outcomes)
    if outcomes:
        return _of_columns(request, outcome_column(request, schema), "share in")
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
        arguments=named_options(request) | {"bounds": schema},
        request=request,
        schema=schema,
    )


def prepare_release(request: Request, described: Schema | None) -> Prepared:
    """Check a request for synthetic rows."""
    from privatest.data.samples import encode_sample  # noqa: PLC0415
    from privatest.synthetic.embedding.points import check_points  # noqa: PLC0415

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
