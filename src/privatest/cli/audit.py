"""``privatest audit``: attack a test with made-up people, without reading our tests."""

from __future__ import annotations

from typing import Annotated

import typer

from privatest.cli import options
from privatest.cli.output import Page, print_json, working

__all__ = ["audit"]


def audit(
    test: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEST",
            help="Question and method, such as two-sample/mmd, or a question for all its methods.",
            show_default="all",
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(metavar="NUMBER", help="What a test claims.")] = 1.0,
    pairs: Annotated[
        int, typer.Option(metavar="NUMBER", help="Pairs of neighbours to compare before noise.")
    ] = 60,
    runs: Annotated[
        int, typer.Option(metavar="NUMBER", help="Runs with secret noise; 0 leaves them out.")
    ] = 2000,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Of the search.")] = 1,
    as_json: options.Json = False,
) -> None:
    """Attack tests with made-up neighbours; exit with 1 if one does not hold.

    Each test runs on pairs of neighbouring data sets: all equal but one,
    corners, ties, blocks, then uphill. With the same noise both must draw the
    same noise with the same scales, and every number that meets it may move
    by its declared sensitivity and no more (ratio 1). Then the worst pair is
    told apart by outputs with secret noise: a lower bound on epsilon.

    \b
    Example:
      privatest audit paired/sign --runs 100
      privatest audit fit/shares --pairs 10 --runs 0
    """
    from privatest.audit import NAMES  # noqa: PLC0415
    from privatest.audit import audit as attack  # noqa: PLC0415
    from privatest.core.errors import ParameterError  # noqa: PLC0415

    wanted = test or list(NAMES)
    names = [name for name in NAMES if any(w in (name, name.partition("/")[0]) for w in wanted)]
    for word in wanted:
        if word not in NAMES and not any(name.startswith(f"{word}/") for name in NAMES):
            raise ParameterError(f"TEST must be a question or one of {', '.join(NAMES)}.")
    page, found = Page(), []
    for name in names:
        with working(f"Attacking {name} ..."):
            results = attack(name, epsilon=epsilon, pairs=pairs, runs=runs, seed=seed)
        found += results
        for each in results if not as_json else ():
            state = "holds" if each.holds else f"BROKEN: {each.caught_by}"
            told = f"epsilon >= {each.distinguished.epsilon:.2f}" if runs else ""
            page.line(f"{each.case:<44} ratio {each.worst.ratio:.4f}  {told}  {state}".rstrip())
            if each.worst.path:
                page.line(f"  {each.worst.path}")
    if as_json:
        print_json({"audited": [each.to_dict() for each in found]})
    if not all(each.holds for each in found):
        raise typer.Exit(1)
