"""``privatest release``: publish private synthetic rows once, for any number of questions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privatest.cli import options
from privatest.cli.asking import answer, describe
from privatest.cli.files import check_new, check_picture, misplaced, save_paid
from privatest.cli.output import Page, print_json, working
from privatest.cli.spending import DatasetOption, LedgerOption, NoLedger, Purse
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.data.place import Place
from privatest.requests.catalogue import usual

if TYPE_CHECKING:
    from privatest.data.schema import Schema
    from privatest.requests.request import Request
    from privatest.synthetic import SyntheticData

__all__ = ["release"]

_USUAL = usual("release")

Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAMES",
        help="Columns to release, with commas between; by default all that are described.",
        rich_help_panel="Data",
    ),
]
Points = Annotated[
    int | None,
    typer.Option(
        "--points",
        metavar="COUNT",
        min=1,
        help="Synthetic rows to release.",
        rich_help_panel="Release",
        show_default="as many as there are, but at most 50,000 (tables) or 500",
    ),
]
PublicPoints = Annotated[
    Path | None,
    typer.Option(
        "--public-points",
        metavar="FILE",
        help="Rows that are public already, such as a published part of the data or made-up "
        "rows: they are in the release as they stand. Never private rows.",
        rich_help_panel="Data",
        show_default="points spread over the bounds",
    ),
]
MethodOption = Annotated[
    str, options.method_option("release", "How rows are made", panel="Release")
]
WeightsOption = Annotated[
    Literal["signed", "bounded", "nonnegative", "equal"] | None,
    typer.Option(
        "--weights",
        metavar="KIND",
        help="signed (nearest to the data), bounded (in sum of sizes), nonnegative (as "
        "probabilities are), or equal (rows are repeated instead).",
        rich_help_panel="Release",
        show_default="equal for tables, signed for points, nonnegative for features",
    ),
]
Kernel = Annotated[
    Literal["gaussian", "laplace", "imq"] | None,
    typer.Option(
        "--kernel",
        metavar="KERNEL",
        help="How likeness falls off with distance: gaussian, laplace or imq.",
        rich_help_panel="Release",
        show_default="gaussian, where there is one",
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Only say which tables would be measured and with how much noise, from public "
        "sizes; nothing is spent.",
        rich_help_panel="Output",
    ),
]
Bandwidth = Annotated[
    float | None,
    typer.Option(
        "--bandwidth",
        metavar="NUMBER",
        help="Width of the kernel, where each column's bounds are 0 and 1.",
        rich_help_panel="Release",
        show_default="as wide as the points lie apart",
    ),
]
Bins = Annotated[
    Literal["adaptive", "even"] | None,
    typer.Option(
        "--bins",
        metavar="KIND",
        help="Bins of numbers in tables: even (of equal length between the bounds), or adaptive "
        "(finer where there are many rows, found with up to a tenth of the budget).",
        rich_help_panel="Release",
        show_default="adaptive, for tables",
    ),
]
Delta = Annotated[
    str,
    typer.Option(
        "--delta",
        metavar="NUMBER",
        help="Probability with which the guarantee may fail: above 0, and well below 1 divided "
        "by the number of rows.",
        rich_help_panel="Privacy",
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write it: a .parquet file.",
        rich_help_panel="Output",
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw each column of the release to a .png, .svg or .pdf file.",
        rich_help_panel="Output",
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Overwrite files that are there.", rich_help_panel="Output"),
]


def release(
    data: options.DataFile,
    *,
    columns: Columns = None,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    public_points: PublicPoints = None,
    epsilon: options.Epsilon,
    delta: Delta,
    rows_per_person: options.RowsPerPerson = None,
    points: Points = None,
    method: MethodOption = _USUAL,
    weights: WeightsOption = None,
    kernel: Kernel = None,
    bandwidth: Bandwidth = None,
    bins: Bins = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    output: Output,
    plot: Picture = None,
    report: options.Report = None,
    force: Force = False,
    dry_run: DryRun = False,
    as_json: options.Json = False,
) -> None:
    """Publish synthetic rows that represent the private ones.

    You pay once. Anyone may then query the synthetic rows for means,
    probabilities, quantiles and distances with `privatest query`, or train
    models on them, at no further cost. Columns are described by --bounds or
    by a schema; fewer columns make a better release.

    \b
    Example:
      privatest release visits.csv --bounds visits=0:80 --bounds age=0:100 \\
        --epsilon 1 --delta 1e-6 --points 50 -o synthetic.parquet
    """
    _check_files(data, public_points, output, plot, force)
    if report is not None:
        check_new(report, "--report", force)

    from privatest.requests.request import Request  # noqa: PLC0415

    described = describe(schema, bounds or [], rows_per_person)
    names = None if columns is None else options.read_names(columns, described)
    request = Request(
        "release",
        method,
        Budget(epsilon, delta),
        parts={"columns": names},
        options={
            "public_points": _points(public_points, described, names),
            "points": points,
            "weights": weights,
            "kernel": kernel,
            "bandwidth": bandwidth,
            "bins": bins,
        },
    )
    if dry_run:
        _foretell(request, data, described, as_json=as_json)
        return
    written = _Written(output)

    def show(made: SyntheticData, more: Mapping[str, Any]) -> None:
        written.show(made, more, as_json=as_json)

    answer(
        request,
        [data],
        described,
        Purse(ledger, dataset, no_ledger),
        as_json=as_json,
        plot=plot,
        report=report,
        about={"file": str(output)},
        keep=written.keep,
        show=show,
        told={} if public_points is None else {"public_points": str(public_points)},
    )
    misplaced(written.place, output)


def _foretell(request: Request, data: Place, described: Schema | None, *, as_json: bool) -> None:
    """Say what would be measured: the number of rows is all that is taken from the data."""
    from privatest.requests.prepare import prepare  # noqa: PLC0415

    prepared = prepare(request, described, samples=1)
    data.check(prepared.names)
    assert prepared.schema is not None
    rows = data.count(prepared.names)
    given = {name: value for name, value in request.options.items() if value is not None}
    rounds = request.entry.foretell(prepared.schema, rows, request.budget, given)
    if as_json:
        print_json(
            {"rows": rows, "columns": list(prepared.names), "rounds": [*map(asdict, rounds)]}
        )
        return
    page = Page()
    page.line(f"{rows:,} rows of {', '.join(prepared.names)}; {request.budget}.")
    for part in rounds:
        noise = f"{part.sigma:.2g} of the bounds" if not part.groups else f"{part.sigma:.3g} rows"
        size = f", at most {part.groups} groups a column" if part.groups else ""
        page.line(f"  {part.tables} {part.what}{size}: noise ± {noise} ({part.share:.0%})")
    if not rounds:
        page.line("  Weights of points, and no tables.")
    page.line("Nothing was spent.")


class _Written:
    """The file of a release: written before the release is recorded, shown afterwards."""

    def __init__(self, output: Path) -> None:
        self.output = self.place = output
        self.recorded: dict[str, Any] = {}

    def keep(self, made: SyntheticData) -> dict[str, Any]:
        """Write the file, and return what the ledger keeps of it."""
        from privatest.synthetic.storage import summary  # noqa: PLC0415

        self.place = save_paid(made.save, self.output)
        checksum = hashlib.sha256(self.place.read_bytes()).hexdigest()
        self.recorded = summary(made) | {"sha256": checksum}
        return self.recorded

    def show(self, made: SyntheticData, more: Mapping[str, Any], *, as_json: bool) -> None:
        """Print what is public about the release, and where it is."""
        from privatest.display.release_plots import strained  # noqa: PLC0415

        with working("Checking how well the rows represent the data ..."):
            poor = list(strained(made))
        if as_json:
            told = {"file": str(self.place), "poor": poor, "guarantee": made.guarantee}
            print_json(self.recorded | told | dict(more))
            return
        page = Page()
        for line in str(made).splitlines():
            page.line(line)
        if poor:
            page.line(
                f"Poorly represented: {', '.join(poor)}. Shares and quantiles there have long "
                "bars; release fewer columns, or --public-points where people are."
            )
        place = self.place
        page.line(f"Wrote {place}. Queries cost nothing more: privatest query {place} mean COLUMN")


def _points(
    file: Path | None, described: Schema | None, names: list[str] | None
) -> dict[str, list[Any]] | None:
    """Return the public rows of a file."""
    if file is None:
        return None
    from privatest.data.sources import read_table  # noqa: PLC0415
    from privatest.requests.prepare import chosen_columns  # noqa: PLC0415

    chosen = chosen_columns(described, names)
    found = read_table(file, list(chosen.columns), text=chosen.categorical_names)
    columns: dict[str, list[Any]] = found.to_pydict()
    return columns


def _check_files(
    data: Place, public_points: Path | None, output: Path, plot: Path | None, force: bool
) -> None:
    from privatest.methods.shares import check_writable  # noqa: PLC0415

    if public_points is not None and data.same(public_points):
        raise ParameterError("--public-points must not be the private data itself.")
    if data.same(output):
        raise ParameterError("--output must not be the private data itself.")
    if output.suffix.lower() != ".parquet":
        raise ParameterError("--output must end in .parquet.")
    check_new(output, "--output", force)
    check_writable(output)
    if plot is not None:
        check_picture(plot)
        check_new(plot, "--plot", force)
        check_writable(plot)
