"""The kernel test of several samples: do the values depend on the group they are in?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import noise_source
from privatest.core.results import Decision
from privatest.core.validation import one_of, public_generator
from privatest.data.by_group import SampleLayout
from privatest.data.samples import Sample, encode_several
from privatest.data.schema import CategoricalColumn, Column, NumericColumn, Schema
from privatest.independence import hsic_test

__all__ = ["several_samples"]

_NAME, _NULL = "{k}-sample MMD test", "all samples come from the same distribution"
_ONLY_TWO = ("relabel", "bin_size")


def several_samples(
    data: tuple[Any, ...],
    *,
    layout: SampleLayout,
    kernel: Any,
    bandwidths: Any,
    method: Any,
    only_two: dict[str, Any],
    **options: Any,
) -> Decision:
    """Test whether three samples or more have the same distribution: that is independence.

    Notes
    -----
    **Sensitivity** That of HSIC, of the values and a label with k public categories: one record
    is replaced, values and group together. A replacement within the group is a special case.

    **Privacy** That of :func:`privatest.hsic_test`: p-value or decision, at (epsilon, delta).
    """
    adjacency = layout.adjacency
    if adjacency == "both":
        raise ParameterError("adjacency must be 'one' or 'row' for three samples or more.")
    one_of("method", method, ("auto", "exact", "nystrom"))
    for name in _ONLY_TWO:
        if only_two[name] not in (None, "auto"):
            raise ParameterError(f"{name} is for two samples.")
    public_generator(options["rng"])  # refused before anything is paid
    noise_source(options["noise"])
    samples, bounds = layout.read(data)
    groups = encode_several(samples, bounds, adjacency=adjacency)
    sizes = list(map(len, groups))
    if adjacency == "one" and min(sizes) < 2:
        raise DataError("each sample must have at least 2 rows.")
    if sum(sizes) < 4:
        raise DataError("the groups must have at least 4 rows together.")
    labels = CategoricalColumn(tuple(range(len(groups))))
    rows, described = _stacked(groups)
    per_person = groups[0].rows_per_person
    result: Decision = hsic_test(
        rows,
        {"group": np.repeat(np.arange(len(groups)), sizes)},
        bounds_x=described,
        bounds_y=Schema({"group": labels}, per_person),
        kernel_x=kernel,
        bandwidths_x=bandwidths,
        method=method,
        **options,
    )
    named = {f"n{place}": size for place, size in enumerate(sizes, start=1)}
    return replace(
        result,
        method_id="mmd_test/several",
        method=_NAME.format(k=len(groups)),
        null_hypothesis=_NULL,
        adjacency=adjacency,
        sizes={"N": sum(sizes)} if adjacency == "row" else named,
    )


def _stacked(groups: Sequence[Sample]) -> tuple[Any, Schema | None]:
    """Return encoded rows below one another, and what is publicly known of them.

    They are already in [0, 1], or codes: encoding them once more changes nothing.
    """
    rows, schema = np.vstack([group.rows for group in groups]), groups[0].schema
    if schema is None:
        return rows, None
    columns: dict[str, Column] = {
        name: CategoricalColumn(tuple(range(levels))) if levels else NumericColumn(0.0, 1.0)
        for name, levels in zip(schema.columns, schema.domain.levels, strict=True)
    }
    table = {name: rows[:, place] for place, name in enumerate(columns)}
    for name in Schema(columns).categorical_names:
        table[name] = table[name].astype(np.intp)
    return table, Schema(columns, schema.rows_per_person)
