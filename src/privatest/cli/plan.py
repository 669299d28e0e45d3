"""``privatest plan``: how many people, which test, which epsilon; nothing is read or spent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privatest.cli import options
from privatest.cli.files import check_picture, save_picture
from privatest.cli.output import Page, print_json, progress
from privatest.cli.plans_kept import Plans
from privatest.core.errors import ParameterError
from privatest.questions.catalogue import usual

if TYPE_CHECKING:
    from privatest.planning import Plan
    from privatest.simulation import Sampler

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Plan a study: power, size, epsilon, and which test. No data is read, no budget spent.",
)

_STUDY, _SIMULATION, _OUTPUT = "Study", "Simulation", "Output"
Planned = Literal["two-sample", "independence", "paired", "fit"]
QuestionOption = Annotated[
    Planned,
    typer.Option("--question", help="What will be asked.", rich_help_panel=_STUDY),
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="METHOD",
        help="The test, as in the command of the question.",
        show_default="the usual one of the question",
        rich_help_panel=_STUDY,
    ),
]
Effect = Annotated[
    float,
    typer.Option(
        "--effect",
        metavar="NUMBER",
        help="What should be seen: a shift in standard deviations, a factor of spread, a "
        "correlation, a difference of shares; see --kind.",
        rich_help_panel=_STUDY,
    ),
]
MaybeEffect = Annotated[
    float | None,
    typer.Option(
        "--effect",
        metavar="NUMBER",
        help="How large the difference is.",
        show_default="what the best test sees with power .8",
        rich_help_panel=_STUDY,
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="What differs: shift, scale, shape, mixture, heavy_tails, atoms, proportions, "
        "tables; of two columns dependence or curve.",
        show_default="the usual one of the columns",
        rich_help_panel=_STUDY,
    ),
]
ColumnTypes = Annotated[
    str,
    typer.Option(
        "--columns",
        metavar="COUNT|TYPES",
        help="How many numeric columns; or types with commas between, of numeric, binary and "
        "categorical.",
        rich_help_panel=_STUDY,
    ),
]
People = Annotated[
    str,
    typer.Option(
        "--n",
        metavar="N",
        help="People in each group, or in all where there are no groups; two sizes with a comma "
        "between.",
        rich_help_panel=_STUDY,
    ),
]
Target = Annotated[
    float,
    typer.Option("--power", help="How often it should be seen.", rich_help_panel=_STUDY),
]
Refine = Annotated[
    bool,
    typer.Option(
        "--refine",
        help="Simulate studies, even where the tables have an answer.",
        rich_help_panel=_SIMULATION,
    ),
]
Runs = Annotated[
    int, typer.Option("--runs", help="Simulated studies a round.", rich_help_panel=_SIMULATION)
]
Seed = Annotated[
    int, typer.Option("--seed", help="Of the simulation.", rich_help_panel=_SIMULATION)
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="Processes.",
        show_default="all processors",
        rich_help_panel=_SIMULATION,
    ),
]
NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        help="Neither use nor keep what was simulated before.",
        rich_help_panel=_SIMULATION,
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw the curve: .png, .svg or .pdf.",
        rich_help_panel=_OUTPUT,
    ),
]


@app.command("power")
def plan_power(
    *,
    n: People,
    effect: Effect,
    epsilon: options.Epsilon,
    question: QuestionOption = "two-sample",
    method: MethodOption = None,
    kind: Kind = None,
    columns: ColumnTypes = "1",
    membership: options.MembershipOption = None,
    delta: options.Delta = "0",
    alpha: options.Alpha = "0.05",
    refine: Refine = False,
    runs: Runs = 400,
    seed: Seed = 0,
    workers: Workers = None,
    no_cache: NoCache = False,
    plot: Picture = None,
    as_json: options.Json = False,
) -> None:
    """Say how often a test would see an effect.

    \b
    Example:
      privatest plan power --n 180 --effect 0.3 --epsilon 1 --method ks
    """
    asked = _asked(question, method, kind, columns, effect, membership, delta, alpha)
    asked |= {"wanted": "power", "n": read_sizes(n), "epsilon": float(epsilon)}
    _answer(asked, refine, runs, seed, workers, no_cache, plot, as_json)


@app.command("size")
def plan_size(
    *,
    effect: Effect,
    epsilon: options.Epsilon,
    power: Target = 0.8,
    question: QuestionOption = "two-sample",
    method: MethodOption = None,
    kind: Kind = None,
    columns: ColumnTypes = "1",
    membership: options.MembershipOption = None,
    delta: options.Delta = "0",
    alpha: options.Alpha = "0.05",
    refine: Refine = False,
    runs: Runs = 300,
    seed: Seed = 0,
    workers: Workers = None,
    no_cache: NoCache = False,
    plot: Picture = None,
    as_json: options.Json = False,
) -> None:
    """Say how many people a test needs, and how many it would need without noise.

    \b
    Example:
      privatest plan size --effect 0.3 --epsilon 1 --membership private
    """
    asked = _asked(question, method, kind, columns, effect, membership, delta, alpha)
    asked |= {"wanted": "n", "power": power, "epsilon": float(epsilon)}
    _answer(asked, refine, runs, seed, workers, no_cache, plot, as_json)


@app.command("epsilon")
def plan_epsilon(
    *,
    n: People,
    effect: Effect,
    power: Target = 0.8,
    question: QuestionOption = "two-sample",
    method: MethodOption = None,
    kind: Kind = None,
    columns: ColumnTypes = "1",
    membership: options.MembershipOption = None,
    delta: options.Delta = "0",
    alpha: options.Alpha = "0.05",
    refine: Refine = False,
    runs: Runs = 300,
    seed: Seed = 0,
    workers: Workers = None,
    no_cache: NoCache = False,
    plot: Picture = None,
    as_json: options.Json = False,
) -> None:
    """Say which epsilon a test needs to see an effect with so many people.

    \b
    Example:
      privatest plan epsilon --n 400 --effect 0.3 --method ks
    """
    asked = _asked(question, method, kind, columns, effect, membership, delta, alpha)
    asked |= {"wanted": "epsilon", "power": power, "n": read_sizes(n)}
    _answer(asked, refine, runs, seed, workers, no_cache, plot, as_json)


@app.command("recommend")
def plan_recommend(
    *,
    n: People,
    epsilon: options.Epsilon,
    question: QuestionOption = "two-sample",
    columns: ColumnTypes = "1",
    membership: options.MembershipOption = None,
    kind: Kind = None,
    effect: MaybeEffect = None,
    delta: options.Delta = "0",
    alpha: options.Alpha = "0.05",
    refine: Refine = False,
    runs: Runs = 200,
    seed: Seed = 0,
    workers: Workers = None,
    plot: Picture = None,
    as_json: options.Json = False,
) -> None:
    """Rank the tests that fit, with the power to expect of each.

    With --kind anything, the mean over shifts, spread and shape.

    \b
    Example:
      privatest plan recommend --n 180 --epsilon 1 --membership private
    """
    from privatest.planning import recommend  # noqa: PLC0415

    if plot is not None:
        check_picture(plot)
    with progress("Simulating", counted=refine) as step:
        ranking = recommend(
            question,
            _people(read_sizes(n)),
            read_columns(columns),
            epsilon=float(epsilon),
            membership=membership or "public",
            delta=float(delta),
            alpha=options.read_alpha(alpha),
            looking_for=kind,
            effect=effect,
            refine=refine,
            runs=runs,
            seed=seed,
            workers=_workers(workers),
            progress=False if step is None else lambda done, of: step(done / of),
        )
    if as_json:
        print_json(ranking.to_dict())
    else:
        page = Page()
        for line in str(ranking).splitlines():
            page.line(line)
    if plot is not None:
        from privatest.plots.planning import plot_recommendation  # noqa: PLC0415

        save_picture(plot_recommendation(ranking).figure, plot, dpi=150)  # type: ignore[arg-type]


def _asked(
    question: str,
    method: str | None,
    kind: str | None,
    columns: str,
    effect: float,
    membership: str | None,
    delta: str,
    alpha: str,
) -> dict[str, Any]:
    """Return what is assumed, as plain values."""
    return {
        "question": question,
        "method": method or usual(question),
        "kind": kind,
        "columns": read_columns(columns),
        "effect": effect,
        "membership": membership or "public",
        "delta": float(delta),
        "alpha": options.read_alpha(alpha),
    }


def _answer(
    asked: dict[str, Any],
    refine: bool,
    runs: int,
    seed: int,
    workers: int | None,
    no_cache: bool,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Answer from what was kept, from the tables or by simulation; print and draw."""
    if plot is not None:
        check_picture(plot)
    kept = Plans.open(None if no_cache else asked | {"refine": refine, "runs": runs, "seed": seed})
    plan = kept.find()
    if plan is None:
        with progress("Simulating", counted=True) as step:
            told = False if step is None else lambda done, of: step(done / of)
            how = {"refine": refine, "runs": runs, "seed": seed, "progress": told}
            plan = _planned(asked, how | {"workers": _workers(workers), "cache": kept.runs})
        kept.keep(plan)
    if as_json:
        print_json(plan.to_dict() | {"price": plan.price, "sentence": plan.sentence})
    else:
        _print(plan)
    if plot is not None:
        from privatest.plots.planning import plot_plan  # noqa: PLC0415

        save_picture(plot_plan(plan).figure, plot, dpi=150)  # type: ignore[arg-type]


def _planned(asked: dict[str, Any], how: dict[str, Any]) -> Plan:
    from privatest import planning  # noqa: PLC0415

    sampler = _sampler(asked)
    shared = {name: asked[name] for name in ("delta", "alpha", "membership")} | how
    method, n = asked["method"], _people(asked.get("n", ()))
    if asked["wanted"] == "power":
        return planning.expected_power(method, sampler, n=n, epsilon=asked["epsilon"], **shared)
    if asked["wanted"] == "epsilon":
        return planning.epsilon_needed(method, sampler, asked["power"], n=n, **shared)
    return planning.sample_size(method, sampler, asked["power"], epsilon=asked["epsilon"], **shared)


def _sampler(asked: dict[str, Any]) -> Sampler:
    from privatest.planning.recommending import column_types, kinds_for, sampler_of  # noqa: PLC0415

    types = column_types(asked["columns"])
    known = kinds_for(asked["question"], types)
    kind = asked["kind"] or (known[0] if known else "shift")
    width = len(types) if asked["question"] == "two-sample" else 1
    return sampler_of(asked["question"], kind, asked["effect"], width)


def _print(plan: Plan) -> None:
    page = Page()
    for line in str(plan).splitlines():
        page.line(line)
    if plan.curve:
        name = "n" if plan.wanted == "power" else plan.wanted
        page.line("")
        page.line(f"{name:>10}  power", style="bold")
        for value, rate in plan.curve:
            shown = f"{value:,.0f}" if name == "n" else f"{value:.3g}"
            page.line(f"{shown:>10}  {rate:5.2f} {'█' * round(40 * rate)}")


def read_sizes(text: str) -> list[int]:
    """Read one size, or two with a comma between."""
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not 1 <= len(sizes) <= 2:
        raise ParameterError("n must be a number of people, or two with a comma between.")
    return sizes


def read_columns(text: str) -> int | list[str]:
    """Read a number of columns, or their types."""
    return int(text) if text.strip().isdigit() else [part.strip() for part in text.split(",")]


def _people(sizes: list[int] | tuple[int, ...]) -> Any:
    return sizes[0] if len(sizes) == 1 else tuple(sizes)


def _workers(given: int | None) -> int:
    return given or os.cpu_count() or 1
