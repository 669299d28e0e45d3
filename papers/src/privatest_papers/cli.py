"""``privatest reproduce``: the papers' experiments, run again beside ours; no data is read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privatest.cli import options
from privatest.cli import plan as given
from privatest.cli.options import completing
from privatest.cli.output import Page, check_picture, print_json, print_note, progress, save_picture
from privatest.core.documents import cache_folder
from privatest.core.errors import ParameterError

if TYPE_CHECKING:
    from privatest_papers.experiment import Experiment, Point
    from privatest_papers.results import Rows

__all__ = ["app"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Run the experiments of five papers again and compare them with privatest.",
)


def _names() -> Iterable[str]:
    from privatest_papers.entries import all_experiments  # noqa: PLC0415

    return all_experiments()


Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="An experiment; see the list.",
        autocompletion=completing(_names),
    ),
]
Picture = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw it: .png, .svg or .pdf.")
]


@app.command("list")
def list_experiments(*, as_json: options.Json = False) -> None:
    """List the figures and tables that can be run again.

    \b
    Example:
      privatest reproduce list
    """
    from privatest_papers.entries import all_experiments  # noqa: PLC0415
    from privatest_papers.results import shipped  # noqa: PLC0415

    found = all_experiments().values()
    if as_json:
        print_json({"experiments": [_described(each) for each in found]})
        return
    page = Page()
    for each in found:
        runs = {row.runs for row in shipped(each).rows}
        some = f"{min(runs)} to {max(runs)}" if len(runs) > 1 else "".join(map(str, runs))
        kept = f"{some} runs kept" if runs else "not run yet"
        page.line(f"{each.name:<18} {each.paper}, {each.figure}: {each.title} ({kept})")


@app.command("run")
def run(
    name: Name,
    *,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            metavar="NUMBER",
            help="Simulated studies a point.",
            show_default="the paper's",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Four studies a point: shows that all of it works.")
    ] = False,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", metavar="NAME", help="One of its methods; repeat it for more."),
    ] = None,
    seed: given.Seed = 0,
    workers: given.Workers = None,
    no_cache: given.NoCache = False,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Where the JSON goes, too.")
    ] = None,
    plot: Picture = None,
    as_json: options.Json = False,
) -> None:
    """Run an experiment; what was interrupted goes on, and more runs use those of fewer.

    \b
    Example:
      privatest reproduce run kim-schrab-2 --quick
    """
    from privatest_papers.entries import experiment  # noqa: PLC0415
    from privatest_papers.running import QUICK, run_experiment  # noqa: PLC0415

    entry = experiment(name)
    _check_methods(entry, method or [])
    if plot is not None:
        check_picture(plot)
    if quick and runs is not None:
        raise ParameterError("--quick and --runs exclude each other: pass one of them.")
    cache = None if no_cache else cache_folder() / "reproduce" / f"{entry.name}.jsonl"
    with progress(f"Running {entry.name}", counted=True) as step:
        rows = run_experiment(
            entry,
            runs=QUICK if quick else runs,
            methods=method or [],
            seed=seed,
            workers=workers or os.cpu_count() or 1,
            cache=cache,
            progress=None if step is None else lambda done, of: step(done / of),
        )
    if output is not None:
        _save(rows, output)
    _report(entry, rows, plot, as_json)


@app.command("show")
def show(
    name: Name,
    *,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            metavar="FILE",
            help="What `run --output` wrote.",
            show_default="what comes with the package",
        ),
    ] = None,
    plot: Picture = None,
    as_json: options.Json = False,
) -> None:
    """Show what was found: published, run again, and ours.

    \b
    Example:
      privatest reproduce show kim-schrab-2
    """
    from privatest_papers.entries import experiment  # noqa: PLC0415
    from privatest_papers.results import load, shipped  # noqa: PLC0415

    entry = experiment(name)
    if plot is not None:
        check_picture(plot)
    rows = shipped(entry) if results is None else load(results)
    if rows.name != entry.name:
        raise ParameterError(f"--results must be of {entry.name}; this file is of {rows.name}.")
    if not rows.rows:
        print_note(f"{entry.name} does not come with results: privatest reproduce run {entry.name}")
    _report(entry, rows, plot, as_json)


def _check_methods(entry: Experiment, methods: list[str]) -> None:
    unknown = [name for name in methods if name not in entry.methods]
    if unknown:
        raise ParameterError(f"--method must be one of {', '.join(entry.methods)}.")


def _save(rows: Rows, output: Path) -> None:
    """Write what was found; methods and points that were run before stay in the file."""
    from privatest_papers.results import load  # noqa: PLC0415

    try:
        (load(output).with_more(rows) if output.exists() else rows).save(output)
    except OSError as error:
        raise ParameterError(f"--output cannot be written: {error.strerror}.") from None


def _report(entry: Experiment, rows: Rows, plot: Path | None, as_json: bool) -> None:
    if as_json:
        print_json(_described(entry) | {"rows": rows.to_dict()["rows"]})
    else:
        _print(entry, rows)
    if plot is not None:
        from privatest_papers.plots import plot_experiment  # noqa: PLC0415

        save_picture(plot_experiment(entry, rows), plot, dpi=150)


def _described(entry: Experiment) -> dict[str, Any]:
    return {
        "name": entry.name,
        "paper": entry.paper,
        "figure": entry.figure,
        "title": entry.title,
        "measure": entry.measure,
        "runs_in_paper": entry.runs,
        "methods": dict(entry.methods),
        "points": [_point(point) for point in entry.points],
    }


def _point(point: Point) -> dict[str, Any]:
    return {
        "panel": point.panel,
        "x": point.x,
        "study": dict(point.study),
        "settings": dict(point.settings),
        "published": dict(point.published),
    }


def _print(entry: Experiment, rows: Rows) -> None:
    page = Page()
    page.line(f"{entry.paper}, {entry.figure}: {entry.title}", style="bold")
    page.line(f"{entry.measure} at level {entry.alpha:g}; in brackets: intervals of level .95")
    for panel in entry.panels:
        page.line("")
        page.line(f"{panel} ({entry.axis})", style="bold")
        for name, by in entry.methods.items():
            published = {p.x: p.published[name] for p in _of(entry, panel) if name in p.published}
            own = {row.x: row for row in rows.at(panel, name)}
            for x in sorted({*published, *own}):
                paper = f"published {published[x]:.3f}" if x in published else ""
                row = own.get(x)
                found = "" if row is None else _found(row.mean, row.band, row.runs)
                page.line(f"  {x:<9.4g} {name:<30} {by:<6} {found:<34} {paper}".rstrip())


def _of(entry: Experiment, panel: str) -> list[Point]:
    return [point for point in entry.points if point.panel == panel]


def _found(mean: float, band: tuple[float, float], runs: int) -> str:
    return f"{mean:.3f} [{band[0]:.3f}, {band[1]:.3f}] {runs} runs"
