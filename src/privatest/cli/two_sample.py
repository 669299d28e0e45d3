"""``privatest two-sample``: do two groups of people come from the same distribution?"""

from __future__ import annotations

from typing import Annotated

from privatest.cli import options
from privatest.cli.asking import answer, describe, read_locations
from privatest.cli.grid import GridOption, read_grid
from privatest.cli.spending import DatasetOption, LedgerOption, NoLedger, Purse
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.data.place import Place
from privatest.requests.catalogue import usual

__all__ = ["two_sample"]

_USUAL = usual("two-sample")

Method = Annotated[str, options.method_option("two-sample", "How samples are compared")]


def two_sample(
    data: options.DataFile,
    other: options.OtherFile = None,
    *,
    group: options.GroupColumn = None,
    groups: options.Groups = None,
    more_groups: options.MoreGroups = None,
    columns: options.Columns = None,
    each_column: options.EachColumn = False,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    membership: options.MembershipOption = None,
    adjacency: options.AdjacencyOption = None,
    rows_per_person: options.RowsPerPerson = None,
    release: options.Release = None,
    method: Method = _USUAL,
    alpha: options.Alpha = "0.05",
    adjust: options.Adjust = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    plot: options.Picture = None,
    report: options.Report = None,
    as_json: options.Json = False,
    permutations: options.Permutations = None,
    kernel: options.KernelOption = None,
    bandwidths: options.Bandwidths = None,
    statistics: options.Statistics = None,
    computation: options.Computation = None,
    estimator: options.Estimator = None,
    norm: options.Norm = None,
    alternative: options.TwoSampleAlternative = None,
    locations: options.LocationsFile = None,
    draw_locations: options.DrawLocations = None,
    subtest: options.Subtest = None,
    success: options.Success = None,
    cells: options.Cells = None,
    grid: GridOption = None,
    calibration: options.Calibration = None,
    low: options.Low = None,
    high: options.High = None,
) -> None:
    """Test whether two samples come from the same distribution.

    Give one file with the column that holds the group, or two files. Whole
    distributions are compared, not only means. Columns are described by
    --bounds or by a schema: bounds found from the data would leak it.

    \b
    Example:
      privatest two-sample visits.csv --group plan --groups basic plus \\
        --bounds visits=0:80 --epsilon 1
    """
    from privatest.requests.request import Request  # noqa: PLC0415

    if other is not None and _is_half_a_name(other):  # half a name, not a file
        raise ParameterError(
            f"there is no file {other.text!r}. Quote names with spaces: --columns 'a name'."
        )

    described = describe(schema, bounds or [], rows_per_person)
    request = Request(
        "two-sample",
        method,
        Budget(epsilon, delta),
        options.read_alpha(alpha),
        parts={
            "columns": None if columns is None else options.read_names(columns, described),
            "group": group,
            "groups": _all_groups(groups, more_groups),
            "membership": membership,
            "adjacency": adjacency,
            "each_column": options.read_each(each_column, adjust),
        },
        options={
            "release": release,
            "permutations": permutations,
            "kernel": kernel,
            "bandwidths": options.read_bandwidths(bandwidths),
            "statistics": options.read_statistics(statistics),
            "computation": computation,
            "estimator": estimator,
            "norm": norm,
            "alternative": alternative,
            "locations": read_locations(locations, draw_locations),
            "subtest": subtest,
            "success": success,
            "cells": cells,
            "grid": read_grid(grid),
            "calibration": calibration,
            "low": low,
            "high": high,
        },
    )
    files = [data] if other is None else [data, other]
    purse = Purse(ledger, dataset, no_ledger)
    if other is not None and adjacency != "both":
        _require_two_groups(data, other, purse)
    answer(request, files, described, purse, as_json=as_json, plot=plot, report=report)


def _all_groups(groups: tuple[str, str] | None, more: str | None) -> tuple[str, ...] | None:
    """Return the groups that were named: two, and others."""
    if more is None:
        return groups
    if groups is None:
        raise ParameterError("--more-groups needs --groups A B: the first two.")
    return *groups, *options.read_names(more, None, "more-groups")


def _is_half_a_name(place: Place) -> bool:
    return not any(char in place.text for char in "./*") and not place.exists()


def _require_two_groups(data: Place, other: Place, purse: Purse) -> None:
    """Refuse files that may hold the same people: each group would cost them the whole epsilon."""
    if data.same(other):
        raise ParameterError("the two files are one: everybody would be in both groups.")
    if purse.dataset is None and len(purse.datasets_of([data, other])) == 1:
        raise ParameterError(
            f"both files belong to the data set {purse.datasets_of([data])[0]!r}, so that a person "
            "may be in both. Pass --adjacency both to protect those who are, or --dataset NAME "
            "if nobody is."
        )
