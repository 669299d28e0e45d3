"""``privatest demo``: a private test on real data, told as a story."""

from __future__ import annotations

import math
import shlex
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from privatest.cli import options
from privatest.cli.output import Page, print_result, working
from privatest.cli.spending import Purse, open_ledger, spending
from privatest.core.privacy import Budget
from privatest.data.place import Place
from privatest.datasets import Example, randhie

if TYPE_CHECKING:
    from privatest.cli.spending import Receipt
    from privatest.core.results import Outcome
    from privatest.questions import Prepared

__all__ = ["demo"]

_DATA = (
    "From 1974 to 1982 the RAND health insurance experiment gave American families insurance "
    "plans by lot and counted their visits to doctors. 20,190 rows, each for a person and a year."
)
_QUESTION = (
    "Some plans have an individual deductible (idp = 1): people pay the first bills of a year "
    "themselves. Do they visit doctors (mdvis) as often as the others (idp = 0)?"
)
_HIDDEN = (
    "A whole person: their visits, and also which plan they had. A person has up to 5 rows, one "
    "a year, so the noise is made 5 times as large as it would be for hiding one row."
)
_NAME, _WHOLE = "randhie", "3"
_LEDGER = (
    "A ledger keeps count: it was charged before values were looked at, and it refuses the test "
    "that would go beyond the budget. The demo's ledger was a temporary one; yours is a file."
)
_CAUTION = (
    "One caution: the p-value takes rows as independent. Rows of the same person are not quite, "
    "so in a study of your own use one row per person where you can."
)


def demo(epsilon: options.Epsilon = "1", as_json: options.Json = False) -> None:
    """Compare two groups of real people privately.

    Do people with an individual deductible visit doctors as often as others?
    The answer comes from the RAND health insurance experiment, which is public
    and part of privatest. Run it twice: the noise is drawn anew.

    \b
    Example:
      privatest demo --epsilon 0.5
    """
    from privatest.cli.ledger import bar  # noqa: PLC0415

    budget, example, page = Budget(epsilon), randhie(), Page()
    if not as_json:
        page.line("A private test on real data\n", style="bold")
        page.section("The data", _DATA)
        page.section("The question", _QUESTION)
        page.section("What is hidden", _HIDDEN)
        page.commands("The commands that do the same", *_commands(example, epsilon))
    with working("Reading the data and testing ..."):
        result, prepared, receipt = _test(example, budget)
    words = prepared.words
    if as_json:
        more = {"request": prepared.asked, "files": [str(example.data)]}
        ledger = {"ledger": receipt.to_list()}
        print_result(result, compared=words, as_json=True, more=more | ledger)
        return
    page.line("The answer", style="bold")
    print_result(result, compared=words)
    page.line("")
    page.section("What it says", _reading(result), _CAUTION)
    page.section("What it cost", _cost(budget))
    page.line("The budget", style="bold")
    page.line(f"  {bar(_NAME, receipt.lines[0].account)}")
    page.section("", _LEDGER)
    page.commands(
        "What to try next",
        "privatest demo --epsilon 0.01     far more noise: is the answer still clear?",
        "privatest schema YOURS.csv        a template to describe data of your own",
        "privatest two-sample --help       everything that can be compared, and how",
    )


def _test(example: Example, budget: Budget) -> tuple[Outcome, Prepared, Receipt]:
    """Test, and return the result, what was asked, and what the ledger says."""
    from privatest.data.schema import Schema  # noqa: PLC0415
    from privatest.data.sources import read_table  # noqa: PLC0415
    from privatest.questions import Request, prepare  # noqa: PLC0415
    from privatest.questions.catalogue import usual  # noqa: PLC0415

    parts = {"columns": ["mdvis"], "group": "idp"}
    request = Request("two-sample", usual("two-sample"), budget, parts=parts)
    prepared = prepare(request, Schema.from_toml(example.schema))
    with TemporaryDirectory() as folder:
        purse = Purse(str(Path(folder) / "ledger.db"), _NAME, without=False)
        with open_ledger(purse.ledger, create=True) as ledger:
            ledger.create_dataset(_NAME, Budget(max(Decimal(_WHOLE), budget.epsilon)))
        with spending(purse, budget, [Place(str(example.data))]) as record:
            outcome = prepared.run(read_table(example.data, prepared.names, text=prepared.text))
            receipt = record(outcome.to_dict())
    return cast("Outcome", outcome), prepared, receipt


def _commands(example: Example, epsilon: str) -> tuple[str, str]:
    words = ["privatest", "two-sample", str(example.data), "--schema", str(example.schema)]
    asked = [*words, "--group", "idp", "--columns", "mdvis", "--epsilon", epsilon]
    return f"privatest ledger init {_NAME} --epsilon {_WHOLE}", shlex.join(asked)


def _reading(result: Outcome) -> str:
    """Put the p-value in words."""
    small = result.pvalue < 0.01
    share = f"1 of {1 / result.pvalue:,.0f}" if small else f"{100 * result.pvalue:.0f} of 100"
    rarity = (
        f"If the plan made no difference, a p-value of {result.pvalue:g} or less would come up "
        f"in about {share} such tests."
    )
    if result.reject:
        return (
            f"{rarity} So people with and without the deductible do not visit doctors alike. "
            "The test says that they differ, not by how much."
        )
    return (
        f"{rarity} That is not rare, so no difference was found. This does not show that there "
        "is none: noise may hide it, and a larger epsilon has less of it."
    )


def _cost(budget: Budget) -> str:
    """Say what an epsilon means."""
    epsilon, _ = budget.as_floats
    factor = f"{math.exp(epsilon):.3g}" if epsilon < 100 else "very many"
    return (
        f"{str(budget).capitalize()}. Had any one person other values in all of their "
        f"rows, no result would be more than e^epsilon = {factor} times as likely. Whoever reads "
        "the result can learn only that little about each person. The next test on the same "
        "people costs anew, and the epsilons add up."
    )
