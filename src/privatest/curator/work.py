"""How long a request may take, by public sizes: no clock, no values.

A request is rehearsed before it is paid for, so no budget limits how long that takes.
"""

from __future__ import annotations

from privatest.core.errors import ParameterError
from privatest.curator.config import DatasetConfig
from privatest.questions import Prepared

__all__ = ["limit_work"]

_GRID, _PERMUTATIONS = 6, 999  # bandwidths and permutations where nobody says
# A kernel's features count as so many; to prepare them takes as long as so many permutations.
_FEATURES, _START = 256, 1000
_BINS, _BLOCK_SUMS = 256, 16  # usual bins of rows; sums of a row with permuted labels of blocks


def limit_work(prepared: Prepared, dataset: DatasetConfig, rows: int) -> None:
    """Refuse a test by kernels or a family that would take too long."""
    most = dataset.policy.work
    work = _work(prepared, rows)
    if work > most:
        raise ParameterError(
            f"the request takes too much computing: {work:,} steps, and largest_work of "
            f"{dataset.name} is {most:,}. Lower permutations, name fewer bandwidths, columns or "
            "statistics, or leave out computation and estimator."
        )


def _work(prepared: Prepared, rows: int) -> int:
    """Return about how many numbers a kernel test looks at; 0 for a test without a grid."""
    from privatest.two_sample.common import swaps_labels  # noqa: PLC0415
    from privatest.two_sample.mmd_plan import is_quick  # noqa: PLC0415

    request = prepared.request
    if not {"permutations", "bandwidths"} <= request.entry.options.keys() or request.entry.needed:
        return 0
    assert prepared.schema is not None
    options, adjacency = request.options, prepared.arguments.get("adjacency")
    computation = options.get("computation", "auto")
    swap = adjacency == "row" and swaps_labels(
        "auto",
        rows,
        prepared.schema.rows_per_person,
        request.budget.pure_epsilon,
        options.get("release", request.entry.releases[0]),
    )
    exact = computation == "exact" or options.get("estimator") == "u"
    if adjacency is not None and computation == "auto":
        exact = exact or is_quick(rows, len(prepared.schema.columns), adjacency, swap=swap)
    parted = adjacency == "row" and not swap  # a permutation parts rows from their labels
    kernels = _kernels(prepared, rows, exact=exact, binned=adjacency is not None and not parted)
    return kernels + (_members(prepared, rows, exact=exact, parted=parted) if adjacency else 0)


def _permutations(prepared: Prepared) -> int:
    return int(prepared.request.options.get("permutations", _PERMUTATIONS)) + 1


def _kernels(prepared: Prepared, rows: int, *, exact: bool, binned: bool) -> int:
    """Count what kernels in all columns look at, for each bandwidth or pair of them."""
    from privatest.two_sample.mmd_plan import EXACT_BINS  # noqa: PLC0415

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


def _members(prepared: Prepared, rows: int, *, exact: bool, parted: bool) -> int:
    """Count the other members' features: of each row, and of bins for each permutation."""
    from privatest.statistics.portfolio import chosen_statistics, members  # noqa: PLC0415

    options = prepared.request.options
    assert prepared.schema is not None
    alone = "bandwidths" in options or options.get("estimator") == "u"
    domain = prepared.schema.domain
    family = chosen_statistics(options.get("statistics"), domain, kernel_only=alone)
    bins = rows if exact and parted else min(rows, _BINS)
    features = sum(part.raw_width for part in members(family, domain, bins))
    return features * (_permutations(prepared) * bins + rows * (_BLOCK_SUMS if parted else 1))
