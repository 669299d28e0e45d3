"""``privatest curator calibrate``: when answers will come."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from privatest.cli import options
from privatest.cli.output import Page, print_json, progress

__all__ = ["calibrate"]


def calibrate(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Data sets.", show_default="all that are registered"),
    ] = None,
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE", help="The curator's file.")
    ] = Path("curator.toml"),
    runs: Annotated[
        int, typer.Option("--runs", metavar="COUNT", min=1, help="Measurements of each method.")
    ] = 5,
    as_json: options.Json = False,
) -> None:
    """Measure how long answers take, so that they can come at public times.

    Every method that is offered runs on made-up rows of the same number. No private
    row is read and no budget is spent. Twice the longest time becomes the response
    time: answers that come through workers are given at its multiples. Run it when
    data sets are registered, on the machine that will answer, while it is as busy
    as it will be.

    \b
    Example:
      privatest curator calibrate visits
    """
    from privatest.curator.calibration import calibrate as measure  # noqa: PLC0415
    from privatest.curator.config import CuratorConfig  # noqa: PLC0415
    from privatest.curator.response_times import response_time  # noqa: PLC0415
    from privatest.requests.catalogue import find  # noqa: PLC0415

    settings = CuratorConfig.load(config)
    with progress("Measuring on made-up rows", counted=True) as told:
        found = measure(settings, names or (), runs=runs, progress=told)
    shown: dict[str, dict[str, Any]] = {
        name: {
            which: {
                "seconds": each.seconds,
                "response_time": response_time(find(*which.split("/"))[1], each.seconds),
            }
            for which, each in measured.items()
        }
        for name, measured in found.datasets.items()
    }
    if as_json:
        print_json({"date": found.date, "machine": dict(found.machine), "datasets": shown})
        return
    page = Page()
    page.line(f"{'data set':<12} {'question/method':<28} {'measured':>9} {'answers after':>14}")
    for name, rows in shown.items():
        for which, row in rows.items():
            page.line(
                f"{name:<12} {which:<28} {row['seconds']:>7.2f} s {row['response_time']:>12.2f} s"
            )
    page.line(f"Kept in {settings.times.name}.")
