"""``privatest demo``: three private answers about real people, told as a story."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privatest.cli import options
from privatest.cli.output import Page, check_report, print_result, working, write_report
from privatest.cli.spending import Purse, open_ledger, spending
from privatest.core.privacy import Budget
from privatest.data.reading import Place
from privatest.datasets import Example, randhie

if TYPE_CHECKING:
    from privatest.cli.spending import Receipt
    from privatest.core.results import Outcome
    from privatest.requests.request import Prepared
    from privatest.synthetic import SyntheticData

__all__ = ["demo"]

_DATA = (
    "From 1974 to 1982 the RAND health insurance experiment gave American families insurance "
    "plans by lot and counted their visits to doctors. 20,190 rows, each for a person and a year."
)
_HIDDEN = (
    "A whole person: their visits, and also which plan they had. A person has up to 5 rows, one "
    "a year, so the noise is made 5 times as large as it would be for hiding one row."
)
_NAME, _DELTA = "randhie", "1e-6"
_LEDGER = (
    "A ledger keeps count: it was charged before values were looked at, and it refuses what "
    "would go beyond the budget. The demo's ledger was a temporary one; yours is a file."
)
_CAUTION = (
    "One caution: p-values take rows as independent. Rows of the same person are not quite, "
    "so in a study of your own use one row per person where you can."
)
Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a page of HTML about the first answer, and one beside it for each other.",
    ),
]


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked, in words and as a request, and how the answer reads."""

    title: str
    words: str
    asked: str
    parts: Mapping[str, Any]
    command: str
    reading: Callable[[Any], str]
    delta: str = "0"


def demo(
    epsilon: options.Epsilon = "1", report: Report = None, as_json: options.Json = False
) -> None:
    """Ask three questions about real people privately, from one budget.

    Do people with an individual deductible visit doctors as often as others? Do
    those with more diseases go more often? And a table for all later questions.
    The data are those of the RAND health insurance experiment, which is public
    and part of privatest. Run it twice: the noise is drawn anew. With --json only
    the first question is asked.

    \b
    Example:
      privatest demo --epsilon 0.5
    """
    budget, example = Budget(epsilon), randhie()
    if report is not None:
        check_report(report)
    with TemporaryDirectory() as folder:
        purse = Purse(str(Path(folder) / "ledger.db"), _NAME, without=False)
        with open_ledger(purse.ledger, create=True) as ledger:
            whole = Budget(max(3 * budget.epsilon, Decimal(3)), _DELTA)
            ledger.create_dataset(_NAME, whole)
        if as_json:
            _first_as_json(example, budget, purse)
            return
        _tell(example, budget, purse, report)


def _first_as_json(example: Example, budget: Budget, purse: Purse) -> None:
    from privatest.data.schema import Schema  # noqa: PLC0415

    result, prepared, receipt = _ask(_QUESTIONS[0], example, budget, purse)
    more = {"request": prepared.asked, "files": [str(example.data)], "ledger": receipt.to_list()}
    used = Schema.from_toml(example.schema).select(prepared.names)
    more |= {"schema": used.to_toml()}
    print_result(result, compared=prepared.words, as_json=True, more=more)


def _tell(example: Example, budget: Budget, purse: Purse, report: Path | None) -> None:
    """Ask all questions, with the story around them."""
    from privatest.cli.ledger import bar  # noqa: PLC0415

    page = Page()
    page.line("Three private answers about real people\n", style="bold")
    page.section("The data", _DATA)
    page.section("What is hidden", _HIDDEN)
    pages = []
    for number, question in enumerate(_QUESTIONS, start=1):
        page.section(f"Question {number}: {question.title}", question.words)
        page.commands("  The command", _command(question, example, budget))
        with working("Reading the data and computing ..."):
            result, prepared, receipt = _ask(question, example, budget, purse)
        page.line("  The answer", style="bold")
        print_result(result, compared=prepared.words)
        page.line("")
        page.section("  In words", question.reading(result))
        if report is not None:
            pages.append(_beside(report, number))
            about = {"request": prepared.asked, "files": [example.data.name]}
            write_report(result, pages[-1], about | {"ledger": receipt.to_list()})
    page.section("What it cost", _cost(budget), _CAUTION)
    page.line("The budget", style="bold")
    page.line(f"  {bar(_NAME, receipt.lines[0].account)}")
    page.section("", _LEDGER)
    if pages:
        page.commands("Pages to read and pass on", *map(str, pages))
    page.commands(
        "What to type next",
        "privatest demo --epsilon 0.01     far more noise: are the answers still clear?",
        "privatest schema YOURS.csv        a template to describe data of your own",
        "privatest plan recommend --n 200 --epsilon 1     which test, before you ask",
        "privatest two-sample --help       everything that can be compared, and how",
    )


def _ask(
    question: _Question, example: Example, budget: Budget, purse: Purse
) -> tuple[Any, Prepared, Receipt]:
    """Return the result, what was asked, and what the ledger says."""
    from privatest.data.files import read_table  # noqa: PLC0415
    from privatest.data.schema import Schema  # noqa: PLC0415
    from privatest.requests.catalogue import default_method  # noqa: PLC0415
    from privatest.requests.prepare import prepare  # noqa: PLC0415
    from privatest.requests.request import Request  # noqa: PLC0415

    cost = Budget(budget.epsilon, question.delta)
    request = Request(question.asked, default_method(question.asked), cost, parts=question.parts)
    prepared = prepare(request, Schema.from_toml(example.schema))
    with spending(purse, cost, [Place(str(example.data))], asked=prepared.asked) as record:
        result = prepared.run(read_table(example.data, prepared.names, text=prepared.text))
        return result, prepared, record(result.to_dict())


def _command(question: _Question, example: Example, budget: Budget) -> str:
    words = ["privatest", question.asked, str(example.data), "--schema", str(example.schema)]
    words += [*question.command.split(), "--epsilon", str(budget.epsilon)]
    return shlex.join(words)


def _beside(report: Path, number: int) -> Path:
    return report if number == 1 else report.with_stem(f"{report.stem}-{number}")


def _rarity(result: Outcome) -> str:
    small = result.pvalue < 0.01
    share = f"1 of {1 / result.pvalue:,.0f}" if small else f"{100 * result.pvalue:.0f} of 100"
    return (
        f"If there were nothing, a p-value of {result.pvalue:.2g} or less would come up in about "
        f"{share} such tests."
    )


_UNCLEAR = (
    "That is not rare, so nothing was found. This does not show that there is nothing: noise may "
    "hide it, and a larger epsilon has less of it."
)


def _plans(result: Outcome) -> str:
    found = (
        "So people with and without the deductible do not visit doctors alike. The test says that "
        "they differ, not by how much."
    )
    return f"{_rarity(result)} {found if result.reject else _UNCLEAR}"


def _diseases(result: Outcome) -> str:
    found = "So visits depend on diseases, in some way: the test looks for every kind."
    return f"{_rarity(result)} {found if result.reject else _UNCLEAR}"


def _table(result: SyntheticData) -> str:
    mean, often = result.mean("mdvis"), result.probability("mdvis > 5")
    return (
        f"People went {mean.value:.1f} times a year (noise: {mean.error or 0:.1g}), and "
        f"{100 * often.value:.0f} of 100 went more than 5 times. These two answers, and all that "
        "anyone computes from these rows, cost nothing more."
    )


_QUESTIONS = (
    _Question(
        "do two groups differ?",
        "Some plans have an individual deductible (idp = 1): people pay the first bills of a year "
        "themselves. Do they visit doctors (mdvis) as often as the others (idp = 0)?",
        "two-sample",
        {"columns": ["mdvis"], "group": "idp"},
        "--group idp --columns mdvis",
        _plans,
    ),
    _Question(
        "are two things related?",
        "Does how often people go (mdvis) depend on how many chronic diseases they have (disea)?",
        "independence",
        {"x": ["disea"], "y": ["mdvis"]},
        "--x disea --y mdvis",
        _diseases,
    ),
    _Question(
        "can others ask later?",
        "A synthetic table of visits and plans, which anyone may query as often as they like.",
        "release",
        {"columns": ["mdvis", "idp"]},
        f"--columns mdvis,idp --delta {_DELTA} -o visits.parquet",
        _table,
        delta=_DELTA,
    ),
)


def _cost(budget: Budget) -> str:
    """Say what an epsilon means."""
    epsilon, _ = budget.as_floats
    factor = f"{math.exp(epsilon):.3g}" if epsilon < 100 else "very many"
    return (
        f"{str(budget).capitalize()} for each answer. Had any one person other values in all of "
        f"their rows, no answer would be more than e^epsilon = {factor} times as likely (but for a "
        "chance of one in a million for the table). Whoever reads them can learn only that little "
        "about each person. Three answers cost three times that: epsilons add up."
    )
