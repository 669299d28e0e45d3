"""``privatest plan``: how many people, which test, which epsilon; nothing is read or spent."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privatest import __version__
from privatest.cli import options
from privatest.cli.output import (
    Page,
    check_picture,
    check_report,
    print_json,
    progress,
    save_picture,
    write_report,
)
from privatest.core.documents import cache_folder, fingerprint, write_text
from privatest.core.errors import ParameterError
from privatest.core.validation import number, reject
from privatest.requests.catalogue import default_method

if TYPE_CHECKING:
    from privatest.planning import Plan, Recommendation
    from privatest.simulation import Sampler

app = typer.Typer(
    no_args_is_help=True,
    help="Plan a study: power, size, epsilon, and which test. No data is read, no budget spent.",
)

_SIMULATION, _OUTPUT = "Simulation", "Output"
_study, _simulation = partial(options.flag, "Study"), partial(options.flag, _SIMULATION)
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

# All options, with their defaults, in the order of the help.
_OPTIONS: Mapping[str, tuple[Any, Any]] = {
    "n": (
        _study(
            "N",
            "People in each group, or in all where there are no groups; two sizes with a comma "
            "between.",
            kind=str,
        ),
        ...,
    ),
    "effect": (
        _study(
            "NUMBER",
            "What should be seen: a shift in standard deviations, a factor of spread, a "
            "correlation, a difference of shares; see --kind.",
            kind=float,
        ),
        ...,
    ),
    "epsilon": (options.Epsilon, ...),
    "power": (_study(None, "How often it should be seen.", kind=float), 0.8),
    "question": (
        _study(
            None, "What will be asked.", kind=Literal["two-sample", "independence", "paired", "fit"]
        ),
        "two-sample",
    ),
    "method": (
        _study(
            "METHOD",
            "The test, as in the command of the question.",
            default="the usual one of the question",
        ),
        None,
    ),
    "kind": (
        _study(
            "KIND",
            "What differs: shift, scale, shape, mixture, heavy_tails, atoms, proportions, "
            "tables; of two columns dependence or curve.",
            default="the usual one of the columns",
        ),
        None,
    ),
    "columns": (
        _study(
            "COUNT|TYPES",
            "How many numeric columns; or types with commas between, of numeric, binary and "
            "categorical.",
            kind=str,
        ),
        "1",
    ),
    "membership": (
        options.flag(
            "Privacy",
            None,
            "Whether everybody may know who is in which group. A test on one file takes it as "
            "private, unless its schema says public.",
            kind=Literal["private", "public"],
        ),
        "public",
    ),
    "delta": (options.Delta, "0"),
    "alpha": (options.Alpha, "0.05"),
    "refine": (
        _simulation(
            None, "Simulate studies, even where the tables have an answer.", "--refine", kind=bool
        ),
        False,
    ),
    "runs": (_simulation(None, "Simulated studies a round.", kind=int), 300),
    "seed": (Seed, 0),
    "workers": (Workers, None),
    "no_cache": (NoCache, False),
    "plot": (
        options.flag(_OUTPUT, "FILE", "Draw the curve: .png, .svg or .pdf.", kind=Path | None),
        None,
    ),
    "report": (
        options.flag(_OUTPUT, "FILE.html", "Write a page about the plan.", kind=Path | None),
        None,
    ),
    "as_json": (options.Json, False),
}
_RECOMMENDED: Mapping[str, tuple[Any, Any]] = {
    "effect": (
        _study(
            "NUMBER",
            "How large the difference is.",
            kind=float | None,
            default="what the best test sees with power .8",
        ),
        None,
    ),
    "kind": (
        _study(
            "KIND",
            "What differs, as far as the tables have it: of one column shift, scale, shape, "
            "heavy_tails, or anything; of two columns dependence or curve.",
            default="the usual one of the columns",
        ),
        None,
    ),
    "runs": (_OPTIONS["runs"][0], 200),
}


def _add(
    name: str, without: str, changed: Mapping[str, tuple[Any, Any]] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command that takes all options but those ``without``."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        parameters = [
            inspect.Parameter(
                option,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if default is ... else default,
                annotation=hint,
            )
            for option, (hint, default) in (dict(_OPTIONS) | dict(changed or {})).items()
            if option not in without.split()
        ]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        return app.command(name)(command)

    return add


@_add("power", without="power", changed={"runs": (_OPTIONS["runs"][0], 400)})
def plan_power(**values: Any) -> None:
    """Say how often a test would see an effect.

    \b
    Example:
      privatest plan power --n 180 --effect 0.3 --epsilon 1 --method ks
    """
    _answer("power", values)


@_add("size", without="n")
def plan_size(**values: Any) -> None:
    """Say how many people a test needs, and how many it would need without noise.

    \b
    Example:
      privatest plan size --effect 0.3 --epsilon 1 --membership private
    """
    _answer("n", values)


@_add("epsilon", without="epsilon")
def plan_epsilon(**values: Any) -> None:
    """Say which epsilon a test needs to see an effect with so many people.

    \b
    Example:
      privatest plan epsilon --n 400 --effect 0.3 --method ks
    """
    _answer("epsilon", values)


@_add("recommend", without="power method no_cache", changed=_RECOMMENDED)
def plan_recommend(
    *,
    question: str,
    n: str,
    columns: str,
    epsilon: str,
    delta: str,
    alpha: str,
    kind: str | None,
    workers: int | None,
    plot: Path | None,
    report: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Rank the tests that fit, with the power to expect of each.

    With --kind anything, the mean over shifts, spread and shape.

    \b
    Example:
      privatest plan recommend --n 180 --epsilon 1 --membership private
    """
    from privatest.planning import recommend  # noqa: PLC0415

    _check_files(plot, report)
    try:
        with progress("Simulating", counted=values["refine"]) as step:
            ranking = recommend(
                question,
                _people(read_sizes(n)),
                read_columns(columns),
                epsilon=_amount("epsilon", epsilon),
                delta=_amount("delta", delta),
                alpha=options.read_alpha(alpha),
                looking_for=kind,
                workers=workers or os.cpu_count() or 1,
                progress=False if step is None else lambda done, of: step(done / of),
                **values,
            )
    except ParameterError as error:
        error.rename({"looking_for": "kind"})
        raise
    if as_json:
        print_json(ranking.to_dict())
    else:
        Page().text(ranking)
    _write_files(ranking, plot, report)


def _answer(wanted: str, values: dict[str, Any]) -> None:
    """Answer from the cache, from the tables or by simulation; print and draw."""
    study = {
        "question": values["question"],
        "method": values["method"] or default_method(values["question"]),
        "kind": values["kind"],
        "columns": read_columns(values["columns"]),
        "effect": number("effect", values["effect"]),
        "membership": values["membership"],
        "delta": _amount("delta", values["delta"]),
        "alpha": options.read_alpha(values["alpha"]),
        "wanted": wanted,
    }
    if wanted != "power":
        study["power"] = number("power", values["power"])
    if wanted != "n":
        study["n"] = read_sizes(values["n"])
    if wanted != "epsilon":
        study["epsilon"] = _amount("epsilon", values["epsilon"])
    _check_files(values["plot"], values["report"])
    settings = {name: values[name] for name in ("refine", "runs", "seed")}
    cache = PlanCache.open(None if values["no_cache"] else study | settings)
    plan = cache.find()
    if plan is None:
        workers = values["workers"] or os.cpu_count() or 1
        with progress("Simulating", counted=True) as step:
            told = False if step is None else lambda done, of: step(done / of)
            more = {"progress": told, "workers": workers, "cache": cache.runs}
            plan = _simulated(study, settings | more)
        cache.keep(plan)
    if values["as_json"]:
        print_json(plan.to_dict() | {"price": plan.price, "sentence": plan.sentence})
    else:
        _print(plan)
    _write_files(plan, values["plot"], values["report"])


def _simulated(study: dict[str, Any], settings: dict[str, Any]) -> Plan:
    from privatest import planning  # noqa: PLC0415

    sampler = _sampler(study)
    shared = {name: study[name] for name in ("delta", "alpha", "membership")} | settings
    method, n = study["method"], _people(study.get("n", ()))
    if study["wanted"] == "power":
        return planning.expected_power(method, sampler, n=n, epsilon=study["epsilon"], **shared)
    if study["wanted"] == "epsilon":
        return planning.epsilon_needed(method, sampler, study["power"], n=n, **shared)
    return planning.sample_size(method, sampler, study["power"], epsilon=study["epsilon"], **shared)


def _sampler(study: dict[str, Any]) -> Sampler:
    from privatest.planning.recommendation import column_types, kinds_for, sampler_of  # noqa: PLC0415

    types = column_types(study["columns"])
    known = kinds_for(study["question"], types)
    kind = study["kind"] or (known[0] if known else "shift")
    width = len(types) if study["question"] == "two-sample" else 1
    return sampler_of(study["question"], kind, study["effect"], width)


def _print(plan: Plan) -> None:
    page = Page()
    page.text(plan)
    if plan.curve:
        name = "n" if plan.wanted == "power" else plan.wanted
        page.line("")
        page.line(f"{name:>10}  power", style="bold")
        for value, rate in plan.curve:
            shown = f"{value:,.0f}" if name == "n" else f"{value:.3g}"
            page.line(f"{shown:>10}  {rate:5.2f} {'█' * round(40 * rate)}")


def _check_files(plot: Path | None, report: Path | None) -> None:
    if plot is not None:
        check_picture(plot)
    if report is not None:
        check_report(report)


def _write_files(plan: Plan | Recommendation, plot: Path | None, report: Path | None) -> None:
    """Draw the picture and write the page."""
    if plot is not None:
        drawn: Any = plan.plot()
        save_picture(drawn.figure, plot, dpi=150)
    if report is not None:
        write_report(plan, report)


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


def _people(sizes: list[int] | tuple[int, ...]) -> Any:
    return sizes[0] if len(sizes) == 1 else tuple(sizes)


@dataclass(frozen=True, slots=True)
class PlanCache:
    """A plan in the user's cache folder, and its runs if it was interrupted. No data is in them."""

    file: Path | None

    @classmethod
    def open(cls, study: dict[str, Any] | None) -> PlanCache:
        """Return the cache of a study; None is for no cache."""
        if study is None:
            return cls(None)
        return cls(
            cache_folder() / "plans" / f"{fingerprint({**study, 'version': __version__})[:24]}.json"
        )

    @property
    def runs(self) -> Path | None:
        """Return the file of single runs, which is there until the plan is."""
        return None if self.file is None else self.file.with_suffix(".jsonl")

    def find(self) -> Plan | None:
        """Return the plan; None if there is none, or it cannot be read."""
        from privatest.planning import Plan  # noqa: PLC0415

        with suppress(OSError, ValueError, TypeError):
            if self.file is not None and self.file.exists():
                found = json.loads(self.file.read_text(encoding="utf-8"))
                curves = [name for name in found if name.startswith("curve")]
                tuples = {name: tuple(map(tuple, found[name])) for name in curves}
                return Plan(**{**found, **tuples, "n": tuple(found["n"])})
        return None

    def keep(self, plan: Plan) -> None:
        """Write a plan that was simulated; a failure is ignored."""
        if self.file is None or self.runs is None or plan.low is None:
            return
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.file, plan.to_json())
            self.runs.unlink(missing_ok=True)
