"""``privatest plan``: how many people, which test, which epsilon; nothing is read or spent."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from privatest.cli import options
from privatest.cli import plan_options as given
from privatest.cli.files import check_picture, check_report, save_picture, write_report
from privatest.cli.output import Page, print_json, progress
from privatest.cli.plans_kept import Plans
from privatest.core.errors import ParameterError
from privatest.core.validation import number, reject
from privatest.requests.catalogue import usual

if TYPE_CHECKING:
    from privatest.planning import Plan, Recommendation
    from privatest.simulation import Sampler

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="Plan a study: power, size, epsilon, and which test. No data is read, no budget spent.",
)


@app.command("power")
def plan_power(
    *,
    n: given.People,
    effect: given.Effect,
    epsilon: options.Epsilon,
    question: given.QuestionOption = "two-sample",
    method: given.MethodOption = None,
    kind: given.Kind = None,
    columns: given.ColumnTypes = "1",
    membership: given.Membership = "public",
    delta: options.Delta = "0",
    alpha: options.Alpha = "0.05",
    refine: given.Refine = False,
    runs: given.Runs = 400,
    seed: given.Seed = 0,
    workers: given.Workers = None,
    no_cache: given.NoCache = False,
    plot: given.Picture = None,
    report: given.Report = None,
    as_json: options.Json = False,
) -> None:
    """Say how often a test would see an effect.

    \b
    Example:
      privatest plan power --n 180 --effect 0.3 --epsilon 1 --method ks
    """
    asked = _asked(question, method, kind, columns, effect, membership, delta, alpha)
    asked |= {"wanted": "power", "n": read_sizes(n), "epsilon": _amount("epsilon", epsilon)}
    _answer(asked, refine, runs, seed, workers, no_cache, plot, report, as_json)


@app.command("size")
def plan_size(
    *,
    effect: given.Effect,
    epsilon: options.Epsilon,
    power: given.Target = 0.8,
    question: given.QuestionOption = "two-sample",
    method: given.MethodOption = None,
    kind: given.Kind = None,
    columns: given.ColumnTypes = "1",
    membership: given.Membership = "public",
    delta: options.Delta = "0",
    alpha: options.Alpha = "0.05",
    refine: given.Refine = False,
    runs: given.Runs = 300,
    seed: given.Seed = 0,
    workers: given.Workers = None,
    no_cache: given.NoCache = False,
    plot: given.Picture = None,
    report: given.Report = None,
    as_json: options.Json = False,
) -> None:
    """Say how many people a test needs, and how many it would need without noise.

    \b
    Example:
      privatest plan size --effect 0.3 --epsilon 1 --membership private
    """
    asked = _asked(question, method, kind, columns, effect, membership, delta, alpha)
    asked |= {
        "wanted": "n",
        "power": number("power", power),
        "epsilon": _amount("epsilon", epsilon),
    }
    _answer(asked, refine, runs, seed, workers, no_cache, plot, report, as_json)


@app.command("epsilon")
def plan_epsilon(
    *,
    n: given.People,
    effect: given.Effect,
    power: given.Target = 0.8,
    question: given.QuestionOption = "two-sample",
    method: given.MethodOption = None,
    kind: given.Kind = None,
    columns: given.ColumnTypes = "1",
    membership: given.Membership = "public",
    delta: options.Delta = "0",
    alpha: options.Alpha = "0.05",
    refine: given.Refine = False,
    runs: given.Runs = 300,
    seed: given.Seed = 0,
    workers: given.Workers = None,
    no_cache: given.NoCache = False,
    plot: given.Picture = None,
    report: given.Report = None,
    as_json: options.Json = False,
) -> None:
    """Say which epsilon a test needs to see an effect with so many people.

    \b
    Example:
      privatest plan epsilon --n 400 --effect 0.3 --method ks
    """
    asked = _asked(question, method, kind, columns, effect, membership, delta, alpha)
    asked |= {"wanted": "epsilon", "power": number("power", power), "n": read_sizes(n)}
    _answer(asked, refine, runs, seed, workers, no_cache, plot, report, as_json)


@app.command("recommend")
def plan_recommend(
    *,
    n: given.People,
    epsilon: options.Epsilon,
    question: given.QuestionOption = "two-sample",
    columns: given.ColumnTypes = "1",
    membership: given.Membership = "public",
    kind: given.RankedKind = None,
    effect: given.MaybeEffect = None,
    delta: options.Delta = "0",
    alpha: options.Alpha = "0.05",
    refine: given.Refine = False,
    runs: given.Runs = 200,
    seed: given.Seed = 0,
    workers: given.Workers = None,
    plot: given.Picture = None,
    report: given.Report = None,
    as_json: options.Json = False,
) -> None:
    """Rank the tests that fit, with the power to expect of each.

    With --kind anything, the mean over shifts, spread and shape.

    \b
    Example:
      privatest plan recommend --n 180 --epsilon 1 --membership private
    """
    from privatest.planning import recommend  # noqa: PLC0415

    _check(plot, report)
    with _named(), progress("Simulating", counted=refine) as step:
        ranking = recommend(
            question,
            _people(read_sizes(n)),
            read_columns(columns),
            epsilon=_amount("epsilon", epsilon),
            membership=membership,
            delta=_amount("delta", delta),
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
    _keep(ranking, plot, report)


def _asked(
    question: str,
    method: str | None,
    kind: str | None,
    columns: str,
    effect: float,
    membership: str,
    delta: str,
    alpha: str,
) -> dict[str, Any]:
    """Return what is assumed, as plain values."""
    return {
        "question": question,
        "method": method or usual(question),
        "kind": kind,
        "columns": read_columns(columns),
        "effect": number("effect", effect),
        "membership": membership,
        "delta": _amount("delta", delta),
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
    report: Path | None,
    as_json: bool,
) -> None:
    """Answer from what was kept, from the tables or by simulation; print and draw."""
    _check(plot, report)
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
    _keep(plan, plot, report)


def _check(plot: Path | None, report: Path | None) -> None:
    if plot is not None:
        check_picture(plot)
    if report is not None:
        check_report(report)


def _keep(answered: Plan | Recommendation, plot: Path | None, report: Path | None) -> None:
    """Draw the picture and write the page that were asked for."""
    if plot is not None:
        drawn: Any = answered.plot()
        save_picture(drawn.figure, plot, dpi=150)
    if report is not None:
        write_report(answered, report)


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
    from privatest.planning.recommendation import column_types, kinds_for, sampler_of  # noqa: PLC0415

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


def _amount(name: str, text: str) -> float:
    """Read epsilon or delta."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    above = name == "epsilon"
    if not math.isfinite(value) or value < 0 or (above and value == 0):
        reject(name, f"a finite number {'above' if above else 'of at least'} 0", text)
    return value


@contextmanager
def _named() -> Iterator[None]:
    """Call a parameter as the command does."""
    try:
        yield
    except ParameterError as error:
        error.rename({"looking_for": "kind"})
        raise


def _people(sizes: list[int] | tuple[int, ...]) -> Any:
    return sizes[0] if len(sizes) == 1 else tuple(sizes)


def _workers(given: int | None) -> int:
    return given or os.cpu_count() or 1
