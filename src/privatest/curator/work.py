"""How long a request may take, by public sizes: no clock, no values.

A request is rehearsed before it is paid for, so no budget limits how long that takes.
"""

from __future__ import annotations

from privatest.core.errors import ParameterError, PrivatestError
from privatest.curator.config import DatasetConfig
from privatest.requests.request import Prepared, PreparedEach

__all__ = ["count_steps", "limit_work"]

_GRID, _PERMUTATIONS = 6, 999  # bandwidths and permutations where nobody says
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
    from privatest.numerics.permutation import EXACT_ROWS, MOST_CELLS_CHOSEN  # noqa: PLC0415

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
    from privatest.numerics.permutation import LineMetric, metric  # noqa: PLC0415

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
    from privatest.methods.hsic import count_pairs  # noqa: PLC0415

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
