"""Which tests of the catalogue fit some columns, and which effects the tables have for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from privatest.core.validation import integer_at_least, one_of
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.planning.tables import kinds_of
from privatest.requests.catalogue import METHODS, Method
from privatest.simulation import samplers, samplers_tables
from privatest.simulation.sampler import Sampler

__all__ = ["column_types", "fitting_methods", "kinds_for", "sampler_of"]

_TYPES = ("numeric", "binary", "categorical")


def column_types(columns: object) -> list[str]:
    """Return the types of columns, however they are described."""
    if isinstance(columns, Mapping):
        columns = Schema.from_bounds(columns)
    if isinstance(columns, Schema):
        return [_type(column) for column in columns.columns.values()]
    if isinstance(columns, str):
        columns = [columns]
    if isinstance(columns, Sequence):
        return [one_of("columns", each, _TYPES) for each in columns]
    return ["numeric"] * integer_at_least("columns", columns, 1)


def kinds_for(question: str, types: Sequence[str]) -> list[str]:
    """Return the kinds of effects that the tables have for such columns, the usual one first."""
    kinds = {*types}
    if question == "two-sample" and kinds == {"binary"} and len(types) == 1:
        return ["proportions"]
    if kinds == {"categorical"} or (question == "independence" and "categorical" in kinds):
        single = len(types) <= (2 if question == "independence" else 1)
        return ["tables"] if single and "numeric" not in kinds else []
    if "categorical" in kinds or "binary" in kinds:
        return []
    width = len(types) if question == "two-sample" else 1
    usual = ["shift", "dependence"]
    found = [k for k in kinds_of(question, width) if k not in ("proportions", "tables")]
    return sorted(found, key=lambda kind: kind not in usual)


def sampler_of(question: str, kind: str, effect: float, columns: int = 1) -> Sampler:
    """Return the sampler of a kind, as the tables have it."""
    one_of("kind", kind, _MAKERS)
    return _MAKERS[kind](effect, question, columns)


def _plain(name: str) -> Callable[[float, str, int], Sampler]:
    maker = getattr(samplers, name)
    return lambda effect, question, columns: maker(effect, question=question, columns=columns)


_MAKERS: Mapping[str, Callable[[float, str, int], Sampler]] = {
    **{name: _plain(name) for name in ("shift", "scale", "shape", "mixture", "heavy_tails")},
    "atoms": lambda effect, *_: samplers.atoms(effect),
    "proportions": lambda effect, *_: samplers_tables.proportions(effect),
    "tables": lambda effect, question, _: samplers_tables.tables(effect, question=question),
    "dependence": lambda effect, *_: samplers_tables.dependence(effect),
    "curve": lambda effect, *_: samplers_tables.dependence(effect, form="curve"),
}


def _type(column: object) -> str:
    if isinstance(column, CategoricalColumn):
        return "binary" if len(column.categories) == 2 else "categorical"
    if isinstance(column, NumericColumn) and column.integer:
        return "binary" if (column.lower, column.upper) == (0, 1) else "numeric"
    return "numeric"


def fitting_methods(
    question: str, types: Sequence[str], membership: str, delta: float
) -> tuple[dict[str, Method], dict[str, str]]:
    """Part the methods of a question into those that fit and why the others do not."""
    fitting, excluded = {}, {}
    for name, entry in METHODS[question].items():
        why = _why_not(question, entry, types, membership, delta)
        if why:
            excluded[name] = why
        else:
            fitting[name] = entry
    return fitting, excluded


def _why_not(
    question: str, entry: Method, types: Sequence[str], membership: str, delta: float
) -> str:
    sides = 2 if question in ("independence", "paired") else 1
    numeric = all(each == "numeric" for each in types)
    if membership == "private" and entry.public_groups:
        return f"needs public membership: {entry.public_groups}"
    if entry.needed:
        return f"needs {', '.join(entry.needed)}"
    if entry.needs_delta and not delta:
        return "needs delta above 0"
    if entry.one_column and (not numeric or len(types) > sides):
        return "takes one numeric column"
    if entry.outcomes and [*types] != ["binary"]:
        return "takes one column of successes and failures"
    if entry.categorical and "numeric" in types:
        return "takes categorical columns"
    if entry.preset.get("distance") == "total-variation" and "numeric" in types:
        return "takes categorical columns"
    if (
        entry.preset.get("distance")
        and entry.preset["distance"] != "total-variation"
        and not numeric
    ):
        return "takes numeric columns"
    if entry.function.startswith("methods.means.") and not numeric:
        return "takes numeric columns"
    if entry.preset.get("distance") in ("wasserstein", "kolmogorov") and len(types) > 1:
        return "takes one numeric column"
    if question == "independence" and entry.part:
        return "needs columns that are given"
    return ""
