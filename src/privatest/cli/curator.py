"""``privatest curator``: let others test data that they may not see."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privatest.cli import options
from privatest.cli.calibrate import calibrate
from privatest.cli.curator_care import ConfigFile, renew, revoke
from privatest.cli.files import check_new, check_report, write_report
from privatest.cli.output import Page, paid, print_error, print_json, print_result, working
from privatest.cli.tokens import list_tokens, make_token, revoke_token
from privatest.core.errors import LedgerMissing, ParameterError

if TYPE_CHECKING:
    from privatest.curator import Answer, Price

__all__ = ["ConfigFile", "curator"]

curator = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # rich would print local variables, which hold data
    help="Let others test data that they may not see, within a budget.",
)
curator.command("token")(make_token)
curator.command("tokens")(list_tokens)
curator.command("revoke-token")(revoke_token)

# There is no such argument: it is read to say so, and to allow the usual sign for standard input.
Place = Annotated[str, typer.Argument(metavar="[-]", hidden=True, show_default=False)]
Analyst = Annotated[
    str, typer.Option("--analyst", metavar="NAME", help="Who asks.", show_default=False)
]
_DEFAULT = Path("curator.toml")
# Not to a path: this program can write where the custodian can.
_KEEP = (
    "To keep the rows, ask again with --json and write > FILE.json; it costs nothing more. Then: "
    "privatest query FILE.json mean COLUMN"
)
_LONGEST = 100_000  # characters of a request


@curator.command("init")
def init(
    config: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")] = _DEFAULT,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write an example of the curator's file, to be changed by hand.

    \b
    Example:
      privatest curator init
    """
    from privatest.curator.config import EXAMPLE  # noqa: PLC0415

    if config.exists() and not force:
        raise ParameterError(f"FILE must be a new file: {str(config)!r} exists; pass --force.")
    try:
        config.write_text(EXAMPLE, encoding="utf-8")
    except OSError as error:
        raise ParameterError(f"cannot write {str(config)!r}: {error.strerror}.") from None
    Page().line(f"Wrote {config}. Change it, then run: privatest curator check")


@curator.command("check")
def check(config: ConfigFile = _DEFAULT) -> None:
    """Explain every mistake in the curator's file, with its line.

    Data is not read: `privatest curator register` does that.

    \b
    Example:
      privatest curator check --config curator.toml
    """
    from privatest.curator import Curator  # noqa: PLC0415
    from privatest.curator.config_file import read_config  # noqa: PLC0415

    settings, problems = read_config(config)
    for problem in problems:
        print_error(f"{config.name}, {problem}")
    if settings is None or problems:
        raise typer.Exit(2)
    try:
        with Curator.open(config) as opened:
            reasons = {name: opened.not_ready(name) for name in settings.datasets}
    except LedgerMissing:
        reasons = dict.fromkeys(settings.datasets, "next: privatest curator register")
    page = Page()
    page.line(
        f"{config.name} is in order. Data sets: {len(settings.datasets)}; "
        f"analysts: {len(settings.analysts)}."
    )
    for name, reason in reasons.items():
        page.line(f"  {name:<12} {reason or 'ready'}")


@curator.command("register")
def register(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Data sets.", show_default="all that are not ready"),
    ] = None,
    config: ConfigFile = _DEFAULT,
) -> None:
    """Validate data against its schema, and enter its budget in the ledger.

    This is for the custodian: it says what is wrong with the data. Run it again
    when the file of a data set, its budget or its analysts have changed.

    \b
    Example:
      privatest curator register visits
    """
    from privatest.curator import Curator  # noqa: PLC0415

    page = Page()
    with Curator.open(config, create=True) as opened:
        everything = list(opened.config.datasets)
        wanted = names or [name for name in everything if opened.not_ready(name) is not None]
        for name in wanted:
            with working(f"Validating {name} ..."):
                found = opened.register(name)
            budget = opened.config.datasets[name].budget
            page.line(f"Registered {name}: {found.rows:,} rows, budget {budget}.")
            for twin in opened.twins(name, found):
                page.line(
                    f"  The same contents were registered as {twin} before. What was spent there "
                    "counts for these people too."
                )
        if not wanted:
            page.line("All data sets are registered.")


@curator.command("facts")
def facts(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set.", show_default=False)],
    config: ConfigFile = _DEFAULT,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE.html", help="Write a page.", show_default=False
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Say how a data set is protected, for the public: no row, no answer, no name.

    The terms are those of NIST SP 800-226.

    \b
    Example:
      privatest curator facts visits -o visits-facts.html
    """
    from privatest.core.documents import write_text  # noqa: PLC0415
    from privatest.curator import Curator  # noqa: PLC0415
    from privatest.curator.facts import facts_page  # noqa: PLC0415

    with Curator.open(config) as opened:
        found = opened.facts(name)
    if output is not None:
        try:
            write_text(output, facts_page(found))
        except OSError as error:
            raise ParameterError(f"{output} cannot be written: {error.strerror}.") from None
    if as_json:
        print_json(found)
        return
    page = Page()
    for word, value in found.items():
        shown = ", ".join(value) if isinstance(value, (list, dict)) else value
        page.line(f"{word.replace('_', ' ')}: {shown}")


curator.command("calibrate")(calibrate)


@curator.command("run")
def run(
    place: Place = "-",
    *,
    analyst: Analyst,
    config: ConfigFile = _DEFAULT,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what it would cost; no data is read.")
    ] = False,
    report: options.Report = None,
    as_json: options.Json = False,
) -> None:
    """Answer a request, read from standard input, and charge its budget.

    It reads the data, so it needs the custodian's own rights, and believes what
    --analyst says: run it yourself, or from a service that knows who asks. An
    identical request of the same analyst is answered from the record, at no cost.

    \b
    Example:
      privatest curator run --analyst ada < request.json
    """
    from privatest.curator import Curator  # noqa: PLC0415

    if report is not None:  # never over another file: this program can write where you can
        check_new(report, "--report", force=False)
        check_report(report)
    document = _read(place)
    with Curator.open(config) as opened:
        if dry_run:
            _print_price(opened.price(document, analyst=analyst), as_json=as_json)
            return
        with working("Testing ..."):
            answer = opened.run(document, analyst=analyst)
    with paid("It is recorded: ask again, which costs nothing more."):
        _print_answer(answer, as_json=as_json)
    if report is not None:
        told = {"request": document, "dataset": answer.dataset, "id": answer.id}
        said = {"compared": answer.words} if answer.label == "compared" else {}
        write_report(answer.result, report, told | said | {"recorded": answer.recorded})


def _print_answer(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        print_json(answer.to_dict())
        return
    print_result(answer.result, compared=answer.words, label=answer.label)
    if "parquet" in answer.result.to_dict():
        Page().line(_KEEP)
    if answer.recorded:
        Page().line("Answered from the record: you asked this before, and it cost nothing now.")


@curator.command("price")
def price(
    place: Place = "-",
    *,
    analyst: Analyst,
    config: ConfigFile = _DEFAULT,
    as_json: options.Json = False,
) -> None:
    """Say what a request, read from standard input, would cost.

    No data is read, nothing is spent.

    \b
    Example:
      privatest curator price --analyst ada < request.json
    """
    from privatest.curator import Curator  # noqa: PLC0415

    document = _read(place)
    with Curator.open(config) as opened:
        _print_price(opened.price(document, analyst=analyst), as_json=as_json)


for _command in (revoke, renew):
    curator.command()(_command)


def _print_price(found: Price, *, as_json: bool) -> None:
    if as_json:
        print_json(found.to_dict())
        return
    page = Page()
    where = found.dataset if found.part is None else f"{found.dataset}, part {found.part}"
    if found.recorded:
        page.line(f"Nothing: the answer about {where} is in the record.")
        return
    page.line(f"Price: {found.budget}, charged to {where}.")
    page.line("The budget has that left." if found.affordable else "The budget is too small.")


def _read(place: str) -> Mapping[str, Any]:
    """Read the request, an analyst's public words, from standard input.

    Never from a path: this program can read what the custodian can, and an error quotes what a
    request says. Whoever opens standard input does so with their own rights.
    """
    if place != "-" or sys.stdin is None or sys.stdin.isatty():
        raise ParameterError("the request is read from standard input: write < request.json")
    try:
        text = sys.stdin.read(_LONGEST + 1)
        if len(text) > _LONGEST:
            raise ParameterError(f"the request must have at most {_LONGEST:,} characters.")
        document = json.loads(text, parse_constant=_refuse_constant)
    except OSError as error:
        raise ParameterError(f"cannot read the request: {error.strerror}.") from None
    except ParameterError:
        raise  # it is a ValueError too
    except RecursionError:
        raise ParameterError("the request is nested too deeply.") from None
    except ValueError as error:
        words = str(error) if isinstance(error, json.JSONDecodeError) else "it is not text"
        raise ParameterError(f"the request is not JSON: {words}.") from None
    if not isinstance(document, dict):
        raise ParameterError("the request must be one JSON object.")
    return document


def _refuse_constant(name: str) -> None:
    raise ParameterError(f"the request holds {name}, which is no number.")
