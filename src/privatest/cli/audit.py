"""``privatest audit``: attack a test with made-up people, without reading our tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from privatest.cli import options
from privatest.cli.output import Page, print_json, working

if TYPE_CHECKING:
    from privatest.audit import AuditReport

__all__ = ["audit"]


def audit(
    test: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEST",
            help="A public function such as hsic_test, question and method such as "
            "two-sample/mmd, or a question for all its methods.",
            show_default="all",
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="What a test claims.")] = 1.0,
    pairs: Annotated[
        int, typer.Option(metavar="NUMBER", help="Pairs of neighbours to compare before noise.")
    ] = 60,
    draws: Annotated[
        int,
        typer.Option(metavar="NUMBER", help="Of secret noise, on the numbers of the worst pair."),
    ] = 20_000,
    runs: Annotated[
        int, typer.Option(metavar="NUMBER", help="Whole runs with secret noise on that pair.")
    ] = 200,
    nulls: Annotated[
        int, typer.Option(metavar="NUMBER", help="Runs on rows of a true null hypothesis, a cell.")
    ] = 40,
    attacks: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Which attacks, with commas.", show_default="all"),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Of the search.")] = 1,
    as_json: options.Json = False,
) -> None:
    """Attack tests with made-up neighbours; exit with 1 if one does not hold.

    Each test runs on pairs of neighbouring data sets: all equal but one,
    corners, ties, blocks, two against fifty, wide bounds, then uphill. With
    the same noise both must take one path and say the same, and every number
    that meets noise may move by its declared sensitivity and no more (ratio
    1). The worst pair is told apart by its exact loss and by secret noise: a
    lower bound on epsilon. Strange values, low-order bits, planted values,
    time and levels are tried too.

    \b
    Attacks: sensitivity, replay, exact, draws, runs, floats, outputs, time, level.
    Example:
      privatest audit sign_test --draws 2000 --runs 20 --nulls 5
      privatest audit fit/shares --attacks sensitivity,replay --pairs 10
    """
    from privatest.audit import ATTACKS, NAMES, AuditPlan  # noqa: PLC0415
    from privatest.audit import audit as attack  # noqa: PLC0415
    from privatest.audit.cases import matching_names  # noqa: PLC0415

    wanted = tuple(ATTACKS) if attacks is None else tuple(attacks.replace(" ", "").split(","))
    plan = AuditPlan(pairs, draws, runs, nulls, seed, wanted)
    page, found = Page(), list["AuditReport"]()
    names = matching_names(test) if test else NAMES
    for number, name in enumerate(names, 1):
        place = f"{number} of {len(names)}: "
        with working(f"{place}{name} ...") as update:

            def told(what: str, update: Callable[[str], None] = update, place: str = place) -> None:
                update(f"{place}{what} ...")

            results = attack(name, epsilon=epsilon, plan=plan, progress=told)
        found += results
        for each in results if not as_json else ():
            _show(page, each)
    if as_json:
        print_json({"audited": [each.to_dict() for each in found]})
    if not all(each.holds for each in found):
        raise typer.Exit(1)


def _show(page: Page, found: AuditReport) -> None:
    state = "holds" if found.holds else f"BROKEN, caught by: {', '.join(found.caught_by)}"
    page.line(f"{found.case:<44} {state}")
    for finding in found.findings:
        if finding.told:
            mark = "" if finding.holds else "  <- here"
            page.line(f"  {finding.attack:<12} {finding.told}{mark}")
