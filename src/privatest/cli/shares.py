"""``privatest plan-share``, ``share`` and ``compare``: for owners who trust nobody."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privatest.cli import options
from privatest.cli.output import (
    Page,
    check_new,
    check_report,
    misplaced,
    print_json,
    print_result,
    save_paid,
    working,
    write_report,
)
from privatest.cli.questions import check_place, describe, public_words
from privatest.cli.spending import (
    DatasetOption,
    LedgerOption,
    NoLedger,
    Purse,
    spending,
)
from privatest.core.errors import ParameterError, PrivacyError
from privatest.core.privacy import Budget

if TYPE_CHECKING:
    from privatest.core.results import Outcome
    from privatest.data.schema import Schema

__all__ = ["compare", "plan_share", "share"]

_FREE = (
    "Comparing cost nothing more: a share may be compared any number of times, with any others "
    "of its plan."
)

Locations = Annotated[
    str | None,
    typer.Option(
        "--locations",
        metavar="COUNT|FILE",
        help="How many points of the box to look at, or a file of public points: never private "
        "data.",
        rich_help_panel="Test",
        show_default="10",
    ),
]
Frequencies = Annotated[
    str | None,
    typer.Option(
        "--frequencies",
        metavar="COUNT|FILE",
        help="In place of locations: how many waves, or a file of public frequencies, in radians "
        "per unit of the data.",
        rich_help_panel="Test",
    ),
]
Kernel = Annotated[
    Literal["gaussian", "laplace", "imq"],
    typer.Option(
        "--kernel",
        metavar="KERNEL",
        help="How likeness falls off with distance: gaussian, laplace or imq.",
        rich_help_panel="Test",
    ),
]
Bandwidth = Annotated[
    str | None,
    typer.Option(
        "--bandwidth",
        metavar="NUMBER",
        help="Width of the kernel, where each column's bounds are 0 and 1.",
        rich_help_panel="Test",
        show_default="a quarter of the box's diameter",
    ),
]
Balance = Annotated[
    str,
    typer.Option(
        "--balance",
        metavar="NUMBER",
        help="Noise on second moments by noise on means.",
        rich_help_panel="Privacy",
    ),
]
PlanFile = Annotated[
    Path,
    typer.Option(
        "--plan", metavar="FILE", help="The plan that all owners use.", rich_help_panel="Data"
    ),
]
MaxEpsilon = Annotated[
    str | None,
    typer.Option(
        "--max-epsilon",
        metavar="NUMBER",
        help="Refuse a plan that asks for more.",
        rich_help_panel="Privacy",
    ),
]
MaxDelta = Annotated[
    str | None,
    typer.Option(
        "--max-delta",
        metavar="NUMBER",
        help="Refuse a plan that asks for more.",
        rich_help_panel="Privacy",
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write it, as JSON.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")]
ShareFiles = Annotated[
    list[Path], typer.Argument(metavar="SHARES", help="Two or more shares.", show_default=False)
]


def plan_share(
    *,
    columns: options.Columns = None,
    bounds: options.Bounds = None,
    schema: options.SchemaFile = None,
    epsilon: options.Epsilon,
    delta: options.Delta,
    rows_per_person: options.RowsPerPerson = None,
    balance: Balance = "1",
    locations: Locations = None,
    frequencies: Frequencies = None,
    kernel: Kernel = "gaussian",
    bandwidth: Bandwidth = None,
    output: Output,
    force: Force = False,
    as_json: options.Json = False,
) -> None:
    """Write the plan that owners of shares agree on.

    Nothing in it comes from private data: columns and bounds are what is
    publicly known, and the locations are spread evenly over the bounds. Send
    the plan to every owner; each makes a share with it.

    \b
    Example:
      privatest plan-share --bounds visits=0:80 --bounds age=0:100 \\
        --epsilon 1 --delta 1e-6 -o plan.json
    """
    budget, width = Budget(epsilon, delta), _number("bandwidth", bandwidth)
    noise_ratio = _number("balance", balance)
    check_new(output, "output", force)

    from privatest.methods import shares as plans  # noqa: PLC0415
    from privatest.requests.prepare import chosen_columns  # noqa: PLC0415

    known = describe(schema, bounds, rows_per_person)
    names = None if columns is None else options.read_names(columns, known)
    described = chosen_columns(known, names)
    plan = plans.plan_share(
        described,
        epsilon=budget.epsilon,
        delta=budget.delta,
        locations=_points(locations, described),
        frequencies=_waves(frequencies, described),
        kernel=kernel,
        bandwidth=width,
        balance=1.0 if noise_ratio is None else noise_ratio,
    )
    plan.save(output)
    if as_json:
        print_json({"file": str(output), "plan": plan.digest, **plan.parameters})
        return
    page = Page()
    page.text(plan)
    page.line(
        f"Wrote {output}. Each owner runs: privatest share DATA --plan {output} -o SHARE.json"
    )


def share(
    data: options.DataFile,
    *,
    plan: PlanFile,
    max_epsilon: MaxEpsilon = None,
    max_delta: MaxDelta = None,
    ledger: LedgerOption = None,
    dataset: DatasetOption = None,
    no_ledger: NoLedger = False,
    output: Output,
    force: Force = False,
    as_json: options.Json = False,
) -> None:
    """Publish private moments of your data, to be compared with those of others.

    The share holds the number of rows and noisy moments; it is protected by
    the plan's epsilon and delta and may be given to anybody. Make one share
    and keep it: a second one of the same people costs again.

    \b
    Example:
      privatest plan-share --bounds visits=0:80 \\
        --epsilon 1 --delta 1e-6 -o visits-plan.json
      privatest share visits.csv --plan visits-plan.json -o site-a.json
    """
    limits = Budget(max_epsilon or 10**9, max_delta or "0.999999")
    check_new(output, "output", force)

    from privatest.methods import shares as document  # noqa: PLC0415
    from privatest.methods import shares as plans  # noqa: PLC0415
    from privatest.methods import shares as sharing  # noqa: PLC0415
    from privatest.requests.rehearsal import made_up_rows, rehearse_call  # noqa: PLC0415

    agreed, purse = plans.SharePlan.load(plan), Purse(ledger, dataset, no_ledger)
    if agreed.budget.epsilon > limits.epsilon or agreed.budget.delta > limits.delta:
        raise PrivacyError(f"the plan costs {agreed.budget}, which is more than you allow.")
    names, text = list(agreed.schema.columns), agreed.schema.categorical_names
    # what can be found out before the budget is spent
    check_place(data, names, agreed.schema)
    document.check_writable(output)

    def rehearsal() -> None:
        with working("Rehearsing on made-up rows ..."):
            rehearse_call(
                lambda n: sharing.share(made_up_rows(names, agreed.schema, n), plan=agreed),
                [data.count(names)],
            )

    asked = public_words("share", agreed.budget, [data], agreed.schema, plan=agreed.digest)
    with (
        spending(
            purse, agreed.budget, [data], gaussian=True, rehearsal=rehearsal, asked=asked
        ) as record,
        working("Reading the data and adding noise ..."),
    ):
        made = sharing.share(data.read(names, text), plan=agreed)
        place = save_paid(made.save, output)
        public = {"share": made.checksum, "plan": agreed.digest, "n": made.n}
        receipt = record(public)
    with receipt.shown(as_json=as_json):
        if as_json:
            told = {"columns": names, "file": str(place), "files": [str(data)]}
            cost = {"epsilon": float(agreed.budget.epsilon), "delta": float(agreed.budget.delta)}
            lines = {"guarantee": made.guarantee, "request": asked, "ledger": receipt.to_list()}
            print_json(public | cost | told | lines)
        else:
            page = Page()
            page.text(made)
            page.line(f"Wrote {place}.")
    misplaced(place, output)


def compare(
    shares: ShareFiles,
    *,
    alpha: options.Alpha = "0.05",
    report: options.Report = None,
    as_json: options.Json = False,
) -> None:
    """Test whether owners' data have the same distribution, from their shares.

    No private data is needed, and nothing is spent. Of more than two shares
    each pair is tested, with Holm's correction for their number.

    \b
    Example:
      privatest plan-share --bounds visits=0:80 \\
        --epsilon 1 --delta 1e-6 -o our-plan.json
      privatest share visits.csv --plan our-plan.json -o our-a.json
      privatest share visits.csv --plan our-plan.json -o our-b.json
      privatest compare our-a.json our-b.json
    """
    level = options.read_alpha(alpha)
    if len(shares) < 2:
        raise ParameterError("pass at least two shares to compare.")
    if len(set(shares)) < len(shares):
        raise ParameterError("a share is named twice.")
    if report is not None:
        check_report(report)

    from privatest.methods import shares as comparing  # noqa: PLC0415
    from privatest.methods import shares as sharing  # noqa: PLC0415

    loaded = {str(path): sharing.Share.load(path) for path in shares}
    if len(loaded) > 2:
        pairs = comparing.compare_all(loaded, alpha=level)
        _print_pairs(pairs, as_json=as_json)
        if report is not None:
            write_report({"pairs": _pairs(pairs)}, report)
        return
    (first, a), (second, b) = loaded.items()
    result = comparing.compare(a, b, alpha=level)
    words, more = f"{first} and {second}", {"shares": [first, second]}
    print_result(result, compared=words, as_json=as_json, more=more)
    if not as_json:
        Page().line(_FREE)
    if report is not None:
        write_report(result, report, {**more, "compared": words})


def _pairs(outcomes: dict[tuple[str, str], Outcome]) -> list[dict[str, Any]]:
    return [
        {"shares": pair, "verdict": outcome.verdict, "guarantee": outcome.guarantee}
        | outcome.to_dict()
        for pair, outcome in outcomes.items()
    ]


def _print_pairs(outcomes: dict[tuple[str, str], Outcome], *, as_json: bool) -> None:
    if as_json:
        print_json({"pairs": _pairs(outcomes)})
        return
    page, any_of_them = Page(), next(iter(outcomes.values()))
    rejected = sum(outcome.reject for outcome in outcomes.values())
    page.line(
        f"{rejected} of {len(outcomes)} pairs differ in distribution, at level "
        f"{any_of_them.alpha:g} for all pairs together (Holm).",
        style="bold",
    )
    width = max(len(f"{a} and {b}") for a, b in outcomes)
    for (a, b), outcome in outcomes.items():
        word = "differ" if outcome.reject else "no difference found"
        page.line(f"  {f'{a} and {b}':<{width}}  p = {outcome.pvalue:<8.4g}  {word}")
    simulated = next((o for o in outcomes.values() if o.simulated), None)
    page.line((simulated or any_of_them).guarantee)
    page.line(_FREE)


def _number(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"{name} must be a number; got {text!r}.") from None


def _points(text: str | None, described: Schema) -> Any:
    """Return a count, or the table of a file of public points."""
    if text is None or text.isdecimal():
        return None if text is None else int(text)
    from privatest.data.files import read_table  # noqa: PLC0415

    return read_table(text, list(described.columns), text=described.categorical_names)


def _waves(text: str | None, described: Schema) -> Any:
    if text is None or text.isdecimal():
        return None if text is None else int(text)
    import numpy as np  # noqa: PLC0415

    from privatest.data.columns import one_column  # noqa: PLC0415
    from privatest.data.files import read_table  # noqa: PLC0415

    table = read_table(text, list(described.columns))
    columns = [one_column(table.column(name), name) for name in described.columns]
    return np.column_stack([np.asarray(column) for column in columns])
