"""Whether an analyst may ask what they ask. Nothing here touches data.

An analyst writes only public words. What is private, and what is public, is the custodian's to
say: in the schema, never in a request. Nor may a request take its time, its memory or its luck from
the values it meets: an analyst can watch how long an answer takes and whether there is one, and
neither is covered by noise. Measured: benchmarks/privacy/oracles.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privatest.core.documents import digest
from privatest.core.errors import ParameterError, PrivacyError, PrivatestError
from privatest.core.validation import integer_at_least
from privatest.curator.config import MOST_POINTS, DatasetConfig
from privatest.data.reading import split_source
from privatest.data.schema import CategoricalColumn, Schema, spelling
from privatest.data.sources import Source
from privatest.requests.prepare import prepare
from privatest.requests.request import Prepared, PreparedEach, Request

if TYPE_CHECKING:
    import pyarrow as pa

_LONGEST_TEXT, _LONGEST_LIST = 500, 100
_WHY = "others take longer for some values than for others, or fail, and that would tell them"


def read_request(asked: Request | Mapping[str, Any]) -> Request:
    """Return a request of plain words about one data set; objects could be code."""
    request = asked
    if not isinstance(request, Request):
        if not isinstance(asked, Mapping):
            raise ParameterError("request must be a table of names and values.")
        _short_names(asked, "the request")
        if isinstance(asked.get("where"), Mapping):
            _short_names(asked["where"], "where")
        for name, value in asked.items():
            if name not in ("epsilon", "delta", "where"):  # a Budget reads these, decimals too
                _plain_words(str(name), value)
        request = Request.from_dict(asked)
    _short_names(request.where, "where")
    for name, value in {**request.parts, **request.options}.items():
        _plain_words(name, value)
    for name, labels in request.where.items():
        _plain_words(f"where: {name}", labels)
    about: object = request.dataset
    if not isinstance(about, str) or not about:
        raise ParameterError("dataset must be the name of a data set.")
    return request


def schema_digest(schema: Schema) -> str:
    """Return a fingerprint of what a schema says, however its file is written.

    Which column has ids is left out: it changes no answer, and may be declared later.
    """
    return digest(replace(schema, id_column=None).to_toml())


def admit(request: Request, dataset: DatasetConfig) -> Prepared:
    """Check a request against the public schema and the policy."""
    schema = dataset.schema
    if "membership" in request.parts:
        raise PrivacyError(
            "membership is the custodian's to declare, in the schema; leave it out of the request."
        )
    _allow(request, dataset)
    _refuse_unsteady(request)
    group = request.parts.get("group")
    if group is not None and group not in schema.columns:
        raise ParameterError(
            f"group column {group!r} is not in the schema, which has {', '.join(schema.columns)}."
        )
    prepared = _prepared(request, schema)
    unknown = next((name for name in prepared.names if name not in schema.columns), None)
    if unknown is not None:
        raise ParameterError(f"column {unknown!r} is not in the schema of {dataset.name}.")
    if group is None:
        return prepared
    if isinstance(prepared, PreparedEach):
        columns = prepared.columns.items()
        split = {name: replace(each, call=_splitting(each)) for name, each in columns}
        return replace(prepared, columns=split)
    return replace(prepared, call=_splitting(prepared))


def _splitting(prepared: Prepared) -> Callable[..., tuple[Any, ...]]:
    """Split by the schema's codes. A private group may be empty: failing then would tell so."""
    grouping = prepared.grouping
    assert grouping is not None
    assert grouping.described is not None
    column = grouping.column

    def split(table: pa.Table | Source) -> tuple[Any, ...]:
        if isinstance(table, Source):
            return split_source(table, grouping)
        sides = grouping.sides_of(table.column(column))
        # in one piece: how many pieces have a row of a private group would show in the time
        rows = table.drop_columns([column]).combine_chunks()
        return tuple(rows.filter(sides == place) for place in range(len(grouping.labels)))

    return split


def _prepared(request: Request, schema: Schema) -> Prepared:
    try:
        return prepare(request, schema)
    except PrivatestError:
        raise
    except Exception as error:  # a value of a wrong type; no data was touched
        raise ParameterError(
            f"the request cannot be read ({type(error).__name__}): check the type of each value."
        ) from None


def _allow(request: Request, dataset: DatasetConfig) -> None:
    policy = dataset.policy
    if (request.question, request.method) not in policy.tests:
        offered = sorted({f"{question}/{method}" for question, method in policy.tests})
        raise ParameterError(
            f"{request.question}/{request.method} is not offered for {dataset.name}; "
            f"offered are {', '.join(offered)}."
        )
    for name in ("epsilon", "delta"):
        asked = getattr(request.budget, name)
        most = getattr(policy.largest or dataset.budget, name)
        if asked > most:
            raise ParameterError(
                f"{name} must be at most {most:f} in one request for {dataset.name}."
            )
    if dataset.each is not None and request.budget != dataset.each:
        raise ParameterError(f"every request for {dataset.name} must cost {dataset.each}.")
    usual = {"permutations": 1, "points": MOST_POINTS}  # where nobody says
    for name, number in usual.items():
        most = getattr(policy, name)
        if name not in request.entry.options:
            continue
        # as many points as the data has rows may be too many
        otherwise = most + 1 if name == "points" and request.entry.sized else number
        if integer_at_least(name, request.options.get(name, otherwise), 1) > most:
            given = "" if name in request.options else "given, and "
            raise ParameterError(f"{name} must be {given}at most {most}.")


def categories_of(schema: Schema, name: str) -> list[str]:
    """Return how the categories of a column are written."""
    column = schema.columns[name]
    assert isinstance(column, CategoricalColumn)
    return [spelling(category) for category in column.categories]


def _short_names(table: Mapping[str, Any], what: str) -> None:
    """Refuse long names, which an error would repeat."""
    if len(table) > _LONGEST_LIST or any(len(str(name)) > _LONGEST_TEXT for name in table):
        raise ParameterError(
            f"{what} must have at most {_LONGEST_LIST} names of at most {_LONGEST_TEXT} characters."
        )


def _plain_words(name: str, value: object) -> None:
    """Refuse what is not text, a number, true or false, or a list: objects could be code."""
    items = value if isinstance(value, (list, tuple)) else [value]
    if len(items) > _LONGEST_LIST:
        raise ParameterError(f"{name} must have at most {_LONGEST_LIST} entries.")
    for item in items:
        if isinstance(item, str) and len(item) > _LONGEST_TEXT:
            raise ParameterError(f"{name} must have at most {_LONGEST_TEXT} characters.")
        finite = not isinstance(item, float) or math.isfinite(item)
        if type(item) not in (str, int, float, bool, type(None)) or not finite:
            raise ParameterError(
                f"{name} must be text, numbers, true or false: a curator runs no code of others."
            )


def _refuse_unsteady(request: Request) -> None:
    """Refuse a distribution, a family or a subtest that is not on a short list."""
    from privatest.methods.fit_families import BUILT_IN, plain_name  # noqa: PLC0415
    from privatest.methods.ks import (  # noqa: PLC0415
        CLOSED_FORMS,
        distribution_name,
    )
    from privatest.methods.subsample import OWN_TESTS  # noqa: PLC0415 - only when it is needed

    parts, options = request.parts, request.options
    if "dist" in parts:
        _require("dist", distribution_name(_text("dist", parts["dist"])), CLOSED_FORMS)
    if "family" in parts:
        _require("family", plain_name(_text("family", parts["family"])), BUILT_IN)
    if "subtest" in options:
        _require("subtest", _text("subtest", options["subtest"]), OWN_TESTS)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ParameterError(f"{name} must be text.")
    return value


def _require(name: str, value: str, steady: Collection[str]) -> None:
    if value not in steady:
        raise ParameterError(f"{name}: a curator takes {', '.join(steady)}; {_WHY}.")


# --- work, counted from public sizes: a rehearsal is not paid for, so no budget limits it ---------


_GRID, _PERMUTATIONS = 6, 999  # default bandwidths and permutations
# A kernel's features count as so many; to prepare them takes as long as so many permutations.
_FEATURES, _START = 256, 1000
_LINE_BINS = 64  # of rows whose cells are counted
_BLOCKS = 32  # of rows, permuted by a test of independence
_QUICKER = 4  # sums over rows for all blocks are one matrix product, which is so much quicker


def limit_work(prepared: Prepared, dataset: DatasetConfig, rows: int) -> None:
    """Refuse a test by permutations that would take too long."""
    most = dataset.policy.work
    try:
        work = count_steps(prepared, rows)
    except (ArithmeticError, TypeError, ValueError) as error:
        if isinstance(error, PrivatestError):
            raise
        raise ParameterError(
            f"the request cannot be read ({type(error).__name__}): check the type of each value."
        ) from None
    if work > most:
        raise ParameterError(
            f"the request takes too much computing: {work:,} steps, and largest_work of "
            f"{dataset.name} is {most:,}. Lower permutations, name fewer bandwidths, columns or "
            "statistics, or leave out computation and estimator."
        )


def count_steps(prepared: Prepared, rows: int) -> int:
    """Return about how many numbers a test looks at; 0 for one that is always quick."""
    if isinstance(prepared, PreparedEach):
        return sum(count_steps(each, rows) for each in prepared.columns.values())
    entry = prepared.request.entry
    if entry.work and prepared.schema is not None:
        return entry.count_work(prepared.schema, rows)
    if "permutations" not in entry.options or "subtest" in entry.options or entry.needed:
        return 0
    if prepared.request.question == "independence":
        return _independence(prepared, rows)
    if "bandwidths" in entry.options:
        return _mmd(prepared, rows)
    if "grid" in entry.options:
        return _on_lines(prepared, rows)
    return rows * _permutations(prepared) * _lines(prepared)


def _permutations(prepared: Prepared) -> int:
    return int(prepared.request.options.get("permutations", _PERMUTATIONS)) + 1


def _on_lines(prepared: Prepared, rows: int) -> int:
    """Count rows for each permutation where values are sorted, else cells, and rows once."""
    from privatest.methods.two_groups import swaps_labels  # noqa: PLC0415
    from privatest.numerics.distances import EXACT_ROWS, MOST_CELLS_CHOSEN  # noqa: PLC0415

    request, permutations, lines = prepared.request, _permutations(prepared), _lines(prepared)
    grid = request.options.get("grid")
    few = grid is None and rows <= EXACT_ROWS
    if grid is None and "distance" not in request.entry.preset:  # swaps are not made at ranks
        persons = 1 if prepared.schema is None else prepared.schema.rows_per_person
        few = few or swaps_labels("auto", rows, persons, request.budget.pure_epsilon, "pvalue")
    if few or grid == "exact":
        return rows * permutations * lines
    cells = len(grid) + 1 if isinstance(grid, (list, tuple)) else int(grid or MOST_CELLS_CHOSEN)
    return lines * _LINE_BINS * (permutations * cells + rows) // _QUICKER


def _lines(prepared: Prepared) -> int:
    """Count the lines along which all rows are summed for each permutation."""
    from privatest.numerics.distances import LineMetric, metric  # noqa: PLC0415

    distance = prepared.request.entry.preset.get("distance")
    if distance is None:  # a test of one column, with a law of its own for public groups
        return int(prepared.arguments["adjacency"] == "row")
    assert prepared.schema is not None
    try:
        found = metric(distance, prepared.schema.domain)
    except ParameterError:  # no such distance for these columns: the rehearsal will say so
        return 0
    return found.directions.shape[1] if isinstance(found, LineMetric) else 0


def _independence(prepared: Prepared, rows: int) -> int:
    """Count kernels, and the pairs of functions of other members: for permutations and rows."""
    from privatest.numerics.independence import count_pairs  # noqa: PLC0415

    options, arguments = prepared.request.options, prepared.arguments
    exact = options.get("estimator") == "u"
    domains = arguments["bounds_x"].domain, arguments["bounds_y"].domain
    pairs = count_pairs(
        domains, options.get("statistics"), exact=exact, alone="bandwidths" in options
    )
    members = pairs * _BLOCKS * (_permutations(prepared) + rows // _QUICKER)
    return members + _kernels(prepared, rows, exact=exact, binned=False)


def _mmd(prepared: Prepared, rows: int) -> int:
    """Count kernels in all columns, and the features of other members."""
    from privatest.methods.mmd import is_quick  # noqa: PLC0415
    from privatest.methods.two_groups import swaps_labels  # noqa: PLC0415

    request, adjacency = prepared.request, prepared.arguments["adjacency"]
    assert prepared.schema is not None
    options = request.options
    computation = options.get("computation", "auto")
    swap = adjacency == "row" and swaps_labels(
        "auto",
        rows,
        prepared.schema.rows_per_person,
        request.budget.pure_epsilon,
        options.get("release", request.entry.releases[0]),
    )
    exact = computation == "exact" or options.get("estimator") == "u"
    if computation == "auto":
        exact = exact or is_quick(rows, len(prepared.schema.columns), adjacency, swap=swap)
    parted = adjacency == "row" and not swap  # a permutation parts rows from their labels
    kernels = _kernels(prepared, rows, exact=exact, binned=not parted)
    return kernels + _members(prepared, rows, exact=exact, swap=swap)


def _kernels(prepared: Prepared, rows: int, *, exact: bool, binned: bool) -> int:
    """Count what kernels in all columns look at, for each bandwidth or pair of them."""
    from privatest.methods.mmd import EXACT_BINS  # noqa: PLC0415

    request, permutations = prepared.request, _permutations(prepared)
    if "kernel" not in request.options.get("statistics", "kernel"):
        return 0
    given = request.options.get("bandwidths", range(_GRID))
    widths = 1 if isinstance(given, (int, float, str)) else len(given)
    kernels = widths**2 if request.question == "independence" else widths
    if exact and binned:
        return kernels * (rows**2 + permutations * min(rows, EXACT_BINS) ** 2)
    if exact:
        return kernels * rows**2 * permutations
    fourier = request.options.get("computation") == "fourier"
    each = _FEATURES if fourier else _FEATURES // 32
    return _FEATURES * (kernels * _FEATURES * (permutations + _START) + widths * rows * each)


def _members(prepared: Prepared, rows: int, *, exact: bool, swap: bool) -> int:
    """Count the other members' features: of each row, and of sums for each permutation."""
    from privatest.methods.mmd import sums_kept  # noqa: PLC0415
    from privatest.numerics.permutation import LABEL_BLOCKS  # noqa: PLC0415
    from privatest.numerics.portfolio import chosen_statistics, members  # noqa: PLC0415

    options, adjacency = prepared.request.options, prepared.arguments["adjacency"]
    assert prepared.schema is not None
    alone = "bandwidths" in options or options.get("estimator") == "u"
    domain = prepared.schema.domain
    family = chosen_statistics(options.get("statistics"), domain, kernel_only=alone)
    exact = exact and "kernel" in family
    half = max(rows // 2, 1)  # as if groups were equal: then there are the most features
    kept = sums_kept(half, half, adjacency, exact=exact, swap=swap)
    features = sum(part.raw_width for part in members(family, domain, kept))
    if adjacency == "row" and not swap and not exact:  # sums of all pairs of blocks
        blocks = min(rows, LABEL_BLOCKS)
        return features * blocks * (_permutations(prepared) + rows // _QUICKER)
    added = min(kept, half if swap else rows)
    return features * (_permutations(prepared) * added + rows)
