"""``privatest release``: publish private synthetic rows once, for any number of questions."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privatest.cli import options
from privatest.cli.asking import describe
from privatest.cli.output import Page, working
from privatest.cli.spending import (
    DatasetOption,
    LedgerOption,
    NoLedger,
    Purse,
    print_spent,
    spending,
)
from privatest.errors import ParameterError
from privatest.privacy import Budget
from privatest.validation import number

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.schema import Schema
    from privatest.synthetic import SyntheticData

__all__ = ["check_picture", "draw", "facts", "print_strained", "progress", "release"]

_PICTURES = (".png", ".svg", ".pdf")

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
        show_default="500, or the number of rows if that is less",
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
    Literal["subspace", "features"],
    typer.Option(
        "--method",
        metavar="METHOD",
        help="subspace (public points, private weights) or features (private points and weights, "
        "found by a search).",
        rich_help_panel="Release",
    ),
]
WeightsOption = Annotated[
    Literal["signed", "bounded", "nonnegative", "equal"] | None,
    typer.Option(
        "--weights",
        metavar="KIND",
        help="signed (nearest to the data), bounded (in sum of sizes), nonnegative (as "
        "probabilities are), or equal (rows are repeated instead).",
        rich_help_panel="Release",
        show_default="signed; nonnegative for features",
    ),
]
Kernel = Annotated[
    Literal["gaussian", "laplace", "imq"],
    typer.Option(
        "--kernel",
        metavar="KERNEL",
        help="How likeness falls off with distance: gaussian, laplace or imq.",
        rich_help_panel="Release",
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
    method: MethodOption = "subspace",
    weights: WeightsOption = None,
    kernel: Kernel = "gaussian",
    bandwidth: Bandwidth = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    output: Output,
    plot: Picture = None,
    force: Force = False,
    as_json: options.Json = False,
) -> None:
    """Publish synthetic rows that stand for the private ones.

    The release is paid for once. Anybody may then ask it for means,
    probabilities, quantiles and distances with `privatest query`, or train
    models on it, for ever and at no further cost. Columns are described by
    --bounds or by a schema; fewer columns make a better release.

    \b
    Example:
      privatest release visits.csv --bounds visits=0:80 --bounds age=0:100 \\
        --epsilon 1 --delta 1e-6 --points 50 -o synthetic.parquet
    """
    purse, budget = Purse(ledger, dataset, no_ledger), _budget(epsilon, delta)
    _check_choices(method, weights, bandwidth)
    _check_files(data, public_points, output, plot, force)

    from privatest.requests.prepare import chosen_columns  # noqa: PLC0415

    names = None if columns is None else options.read_names(columns)
    described = chosen_columns(describe(schema, bounds or [], rows_per_person), names)
    with working("Reading the data ..."):
        rows = _read(data, described)
        given = None if public_points is None else _read(public_points, described)
    # a mistake that can be found out before should not cost anything
    _check_points(given, points, rows.num_rows, described)
    settings: dict[str, Any] = {
        "bounds": described,
        "public_points": given,
        "n_points": points,
        "method": method,
        "weights": weights,
        "kernel": kernel,
        "bandwidth": bandwidth,
    }
    with spending(purse, budget, [data], gaussian=True) as record:
        made = _publish(rows, budget, settings)
        made.save(output)
        checksum = hashlib.sha256(output.read_bytes()).hexdigest()
        left = record(facts(made) | {"sha256": checksum})
    _print(made, output, as_json=as_json)
    print_spent(left, purse, as_json=as_json)
    if plot is not None:
        draw(made, plot)


def _publish(rows: pa.Table, budget: Budget, settings: dict[str, Any]) -> SyntheticData:
    from privatest.synthetic import release as publish  # noqa: PLC0415

    with progress("Releasing", settings["method"] == "features") as step:
        told = None if step is None else lambda done, steps: step(done / steps)
        cost: dict[str, Any] = {"epsilon": budget.epsilon, "delta": budget.delta}
        return publish(rows, **cost, **settings, progress=told)


def facts(made: SyntheticData) -> dict[str, Any]:
    """Return what is public about a release, for JSON documents and the ledger."""
    public = made.facts
    kernel = public.kernel
    return {
        "rows": len(made),
        "columns": list(made.columns),
        "n": public.n,
        "epsilon": float(public.spent.epsilon),
        "delta": float(public.spent.delta),
        "adjacency": "one",
        "unit": public.unit,
        "method": public.method,
        "bandwidth": None if kernel is None else kernel.bandwidth,
        "parameters": dict(public.parameters),
        "simulated": public.simulated,
    }


@contextmanager
def progress(what: str, counted: bool) -> Iterator[Callable[[float], None] | None]:
    """Show work: a bar where its share can be told, else that something is going on.

    Gives what the finished share, from 0 to 1, is told to; None where nobody wants to know.
    """
    if not counted or not sys.stderr.isatty():
        with working(f"{what} ..."):
            yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def check_picture(path: Path, option: str, force: bool) -> None:
    """Refuse a picture that could not be drawn, before anything is spent on it."""
    from importlib.util import find_spec  # noqa: PLC0415

    if path.suffix.lower() not in _PICTURES:
        raise ParameterError(f"{option} must end in {', '.join(_PICTURES)}.")
    if find_spec("matplotlib") is None:
        raise ParameterError("pictures need matplotlib: install privatest with its extra 'plot'.")
    _check_new(path, option, force)


def draw(made: SyntheticData, path: Path) -> None:
    """Write the picture of a release."""
    from privatest.plots.marginals import plot_marginals  # noqa: PLC0415

    with working("Drawing ..."):
        figure = plot_marginals(made)
        try:
            figure.savefig(path)
        except OSError as error:
            raise ParameterError(f"{path.name} cannot be written: {error.strerror}.") from None


def print_strained(made: SyntheticData, page: Page, fitted: SyntheticData | None = None) -> None:
    """Warn of columns that the synthetic rows cannot represent."""
    from privatest.plots.marginals import strained  # noqa: PLC0415

    with working("Checking how well the rows stand for the data ..."):
        poor = strained(made, fitted)
    if poor:
        page.line(
            f"Poorly represented: {', '.join(poor)}. Shares and quantiles there are off by more "
            "than their bars; release fewer columns, or --public-points where people are."
        )


def _print(made: SyntheticData, output: Path, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"file": str(output)} | facts(made), indent=2, allow_nan=False))
        return
    page = Page()
    for line in str(made).splitlines():
        page.line(line)
    print_strained(made, page)
    page.line(f"Wrote {output}. Asking it costs nothing more: privatest query {output} mean COLUMN")


def _budget(epsilon: str, delta: str) -> Budget:
    budget = Budget(epsilon, delta)
    if budget.delta == 0:
        raise ParameterError(
            "delta must be above 0: a release adds Gaussian noise to many numbers, which no "
            "epsilon alone can cover. Choose it well below 1 divided by the number of rows, for "
            "example 1e-6."
        )
    return budget


def _check_choices(method: str, weights: str | None, bandwidth: float | None) -> None:
    if method == "features" and weights == "signed":
        raise ParameterError("--weights signed needs --method subspace.")
    if bandwidth is not None:
        number("bandwidth", bandwidth, above=0)


def _check_files(
    data: Path, public_points: Path | None, output: Path, plot: Path | None, force: bool
) -> None:
    from privatest.shares.document import check_writable  # noqa: PLC0415

    if public_points is not None and _same(public_points, data):
        raise ParameterError("--public-points must not be the private data itself.")
    if _same(output, data):
        raise ParameterError("--output must not be the private data itself.")
    if output.suffix.lower() != ".parquet":
        raise ParameterError("--output must end in .parquet.")
    _check_new(output, "--output", force)
    check_writable(output)
    if plot is not None:
        check_picture(plot, "--plot", force)
        check_writable(plot)


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _check_new(path: Path, option: str, force: bool) -> None:
    """Refuse to overwrite: a release that is lost has been paid for."""
    if path.exists() and not force:
        raise ParameterError(f"{option} must be a new file: {str(path)!r} exists; pass --force.")


def _read(path: Path, described: Schema) -> pa.Table:
    from privatest.sources import read_table  # noqa: PLC0415

    return read_table(path, list(described.columns), text=described.categorical_names)


def _check_points(given: Any, points: int | None, n: int, described: Schema) -> None:
    from privatest.encoding import encode_sample  # noqa: PLC0415
    from privatest.synthetic.points import check_points, check_size  # noqa: PLC0415

    if points is not None:
        check_size(points, n)
    if given is not None:
        check_points(encode_sample(given, described, "--public-points").rows, n)
