"""``privatest ledger``: budgets of data sets, and the record of what was spent."""

from __future__ import annotations

import getpass
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privatest.cli import options
from privatest.cli.output import (
    Page,
    check_picture,
    print_either,
    print_json,
    print_note,
    print_result,
    save_picture,
    write_file,
)
from privatest.cli.spending import LedgerOption, existing_ledger, open_ledger
from privatest.core.documents import JSON_FORMAT, default_ledger
from privatest.core.errors import ParameterError, PrivatestError
from privatest.core.privacy import Budget
from privatest.core.results import Decision

if TYPE_CHECKING:
    from privatest.ledger import Account, Answered, Head, Ledger, Totals

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

_BAR = 24  # characters
_COSTS = ("epsilon", "delta")
_FIRST = ("method", "columns", "column", "x", "y", "before", "after", "group", "groups", "where")
_ID = 8  # digits that are shown
_LONGEST = 60  # characters of a value; the JSON document has all of it
_ALL = 1_000_000  # entries; more than anybody asks of one data set
_LOG = (
    "A log lies beside the ledger's file, and entries may be in it alone: a copy of the file made "
    "with cp can lack them. Make copies with privatest ledger backup."
)
_UNCOMPARED = (
    "Not compared with earlier hashes, so a ledger that was replaced by an older copy looks whole. "
    "Keep the hashes elsewhere with --save FILE, and pass --heads FILE next time."
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Data set.", show_default=False)]
OptionalName = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Data set; all by default.", show_default=False)
]
CompositionOption = Annotated[
    Literal["basic", "tight"],
    typer.Option(
        "--composition",
        metavar="HOW",
        help="basic (epsilons and deltas add up), or tight (zCDP: more small requests; needs "
        "--delta).",
    ),
]
NewEpsilon = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="NUMBER", help="New total epsilon.", show_default="as it is"),
]
NewDelta = Annotated[
    str | None,
    typer.Option("--delta", metavar="NUMBER", help="New total delta.", show_default="as it is"),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key",
        metavar="FILE",
        help="Key that signs lines of heads; head makes it if there is none.",
        dir_okay=False,
        show_default=False,
    ),
]
Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why, for the record.", show_default=False)
]
KnownHead = Annotated[
    list[str] | None,
    typer.Option(
        "--head",
        metavar="NAME=HASH",
        help="Last hash of a data set that verify printed before; the chain must lead there. "
        "May be repeated.",
        show_default=False,
    ),
]
KnownHeads = Annotated[
    Path | None,
    typer.Option(
        "--heads",
        metavar="FILE",
        help="Hashes that --save or head --append wrote; every chain must lead there.",
        exists=True,
        dir_okay=False,
        show_default=False,
    ),
]
SaveHeads = Annotated[
    Path | None,
    typer.Option(
        "--save",
        metavar="FILE",
        help="Write the hashes to a file. One that exists is compared first, then replaced.",
        dir_okay=False,
        show_default=False,
    ),
]


@app.callback()
def ledger() -> None:
    """Keep budgets, and the record of what was spent.

    \b
    Example:
      privatest ledger init visits --epsilon 3
    """


@app.command()
def init(
    name: Name,
    *,
    epsilon: options.Epsilon,
    delta: options.Delta = "0",
    composition: CompositionOption = "basic",
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Give a data set its budget; make the ledger if there is none.

    From then on every command that touches the data spends from this budget, and is
    refused once it is used up. Asking again with the same budget changes nothing.
    A budget without --delta affords no request that has one.

    \b
    Example:
      privatest ledger init visits --epsilon 3
    """
    budget = Budget(epsilon, delta)
    with open_ledger(ledger, create=True) as book:
        before = book.totals(name).account.budget if name in book.datasets() else budget
        if before != budget:
            words = ["privatest", "ledger", "set", name, "--epsilon", epsilon, "--delta", delta]
            raise ParameterError(
                f"data set {name!r} has a budget already, {before}. To change it: "
                f"{shlex.join(words)}"
            )
        book.create_dataset(name, budget, composition=composition, exist_ok=True)
        totals = book.totals(name)
    without = "Without delta: requests with --delta, such as releases and shares, will be refused."
    lines = [f"{name} has a budget of {budget}.", *([] if budget.delta else [without])]
    print_either(as_json, totals.to_dict(), *lines)


@app.command("set")
def set_(
    name: Name,
    *,
    epsilon: NewEpsilon = None,
    delta: NewDelta = None,
    analyst: Annotated[
        str | None,
        typer.Option(
            "--analyst",
            metavar="NAME",
            help="Change this analyst's part of the budget.",
            show_default="the data set's",
        ),
    ] = None,
    reason: Reason = "",
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Raise or lower the budget of a data set, or of an analyst; what is not given stays.

    The change is an entry of the record, which keeps the old budget too. A raised
    budget promises people less: do it rarely. No budget can be set below what
    is spent, because that is gone.

    \b
    Example:
      privatest ledger init visits --epsilon 3
      privatest ledger set visits --delta 1e-5 --reason "approved by the board"
    """
    if epsilon is None and delta is None:
        raise ParameterError("pass --epsilon, --delta or both.")
    with existing_ledger(ledger) as book:
        before = _account(_totals(book, name), analyst).budget
        after = Budget(
            before.epsilon if epsilon is None else epsilon, before.delta if delta is None else delta
        )
        words = f"{reason} (by {user()})" if reason and user() else reason
        if after != before and analyst is None:
            book.set_budget(name, after, below_spent=False, reason=words)
        elif after != before and analyst is not None:
            book.set_analyst(name, analyst, after, below_spent=False, reason=words)
        totals = book.totals(name)
    old = {"epsilon": f"{before.epsilon:f}", "delta": f"{before.delta:f}"}
    who = name if analyst is None else f"{analyst} on {name}"
    print_either(
        as_json,
        totals.to_dict() | {"before": old},
        f"{who} now has a budget of {after}; it was {before}.",
        bar(name if analyst is None else f"  {analyst}", _account(totals, analyst)),
    )


@app.command()
def show(
    name: OptionalName = None, *, ledger: LedgerOption = None, as_json: options.Json = False
) -> None:
    """Show what is spent of each budget.

    \b
    Example:
      privatest ledger show
    """
    with existing_ledger(ledger) as book:
        names = book.datasets() if name is None else [name]
        found = [_totals(book, each) for each in names]
    if as_json:
        print_json({"datasets": [totals.to_dict() for totals in found]})
        return
    page = Page()
    if not found:
        page.line("The ledger has no data set yet: privatest ledger init NAME --epsilon 3")
    for totals in found:
        page.line(bar(totals.dataset, totals.account), style="bold")
        for analyst, account in sorted(totals.analysts.items()):
            page.line(bar(f"  {analyst}", account))


@app.command()
def history(
    name: Name,
    *,
    last: Annotated[
        int, typer.Option("--last", metavar="COUNT", min=1, help="How many entries.")
    ] = 50,
    ledger: LedgerOption = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw what was spent over time, of all entries: .png, .svg or .pdf.",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List what was asked of a data set and what became of it, the newest first.

    Each request has an id; `privatest ledger answer ID` prints its answer again.

    \b
    Example:
      privatest ledger history visits
    """
    if plot is not None:
        check_picture(plot)
    with existing_ledger(ledger) as book:
        totals = _totals(book, name)
        entries = book.history(name, last=last)
        if plot is not None:
            from privatest.display.plots import plot_budget  # noqa: PLC0415

            limit = float(totals.account.budget.epsilon)
            drawn: Any = plot_budget(book.history(name, last=_ALL), limit)
            save_picture(drawn.figure, plot, dpi=150)
    if as_json:
        rows = [
            {"sequence": e.sequence, "time": e.time, "kind": e.kind, "hash": e.hash}
            | {"body": e.body}
            for e in entries
        ]
        print_json({"dataset": name, "entries": rows})
        return
    page = Page()
    page.line(f"{'no.':>5}  {'time (UTC)':<20} {'what':<10} details", style="bold")
    for entry in entries:
        when = entry.time.replace("T", " ")[:19]
        page.line(f"{entry.sequence:>5}  {when:<20} {entry.kind:<10} {details(entry.body)}")


@app.command()
def answer(
    number: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="Id of the request, or its first digits, as history shows them.",
            show_default=False,
        ),
    ],
    *,
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Print a recorded answer again, at no cost.

    Of a release or a share the record has the public facts and a checksum; the file
    itself is where it was written.

    \b
    Example:
      privatest ledger answer 3f9a62c1
    """
    with existing_ledger(ledger) as book:
        found = book.answer(number.strip().lower())
    if as_json:
        print_json(found.to_dict())
        return
    if found.state == "committed" and found.released is not None:
        print_answer(found)
        return
    ends = {
        "committed": "It was answered, but the answer is not in the record",
        "failed": f"It failed ({found.reason or 'no reason was recorded'})",
        "open": "It has no end in the record: it is still running, or was lost in a crash",
    }
    raise PrivatestError(
        f"request {found.id[:8]} on {found.dataset} has no recorded answer. {ends[found.state]}. "
        f"Its cost, epsilon {found.epsilon}, is spent. It asked: {words_of(found.asked)}."
    )


@app.command()
def verify(
    *,
    head: KnownHead = None,
    heads: KnownHeads = None,
    save: SaveHeads = None,
    key: KeyFile = None,
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Check that nothing in the ledger was changed afterwards.

    Every entry is chained to the one before it, and all sums are computed again.
    Keep the hashes that are printed somewhere else and pass them the next time: a
    ledger that was cut, rewritten or replaced does not lead to them. The exit code
    is 0 only if all is well.

    \b
    Example:
      privatest ledger verify --save heads.json
    """
    known = _known(head or [], [file for file in (heads, save) if file is not None], key)
    with existing_ledger(ledger) as book:
        log = book.unfolded_log()
        found = [book.verify(each) for each in known or [{}]][-1]
    rows = _heads(found)
    if save is not None:
        document = {"format": JSON_FORMAT, "heads": rows}
        write_file(save, json.dumps(document, indent=2) + "\n")
    compared = sorted({name for each in known for name in each})
    lines = [f"  {n}: {end.sequence:,} entries, last hash {end.hash}" for n, end in found.items()]
    if compared:
        lines.append(f"Compared with earlier hashes: {', '.join(compared)}.")
    elif save is None:
        lines.append(_UNCOMPARED)
    document = {"verified": True, "heads": rows, "compared": compared, "log": log}
    print_either(as_json, document, "The ledger is as it was written.", *lines)
    if log and not as_json:
        print_note(_LOG)


@app.command()
def head(
    *,
    append: Annotated[
        Path | None,
        typer.Option(
            "--append",
            metavar="FILE",
            help="Add a line to this file, after comparing with those in it.",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
    key: KeyFile = None,
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Print where every chain ends, or add that to a file elsewhere.

    The ledger is verified first, and must contain all that the file says. Keep the
    file, or the key that signs its lines, where nobody who writes to the ledger can
    write. `privatest ledger verify --heads FILE` compares.

    \b
    Example:
      privatest ledger head --append heads.log --key heads.key
    """
    from privatest.ledger.verify import add_heads, key_from, read_heads  # noqa: PLC0415

    if key is not None and append is None:
        raise ParameterError("--key goes with --append FILE.")
    secret = None if key is None else key_from(key, create=append is None or not append.exists())
    with existing_ledger(ledger) as book:
        known = read_heads(append, secret) if append is not None and append.exists() else {}
        found = book.verify(known)
        if append is not None:
            add_heads(append, found, secret)
    lines = [
        f"{name}: {end.sequence:,} entries, last hash {end.hash}" for name, end in found.items()
    ]
    file = None if append is None else str(append)
    print_either(as_json, {"heads": _heads(found), "file": file}, *lines)


@app.command()
def backup(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="New file to write.", show_default=False)
    ],
    *,
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Copy the whole ledger to a new file, and verify the copy.

    It may be in use meanwhile. Copying the file with cp can forget the newest
    entries, which are in a log beside it. The copy holds answers and is readable
    by its owner only. Of a ledger in PostgreSQL it is an SQLite file too.

    \b
    Example:
      privatest ledger backup ledger-copy.db
    """
    with existing_ledger(ledger) as book:
        found = book.backup(file)
    entries = sum(end.sequence for end in found.values())
    print_either(
        as_json,
        {"file": str(file), "entries": entries, "heads": _heads(found)},
        f"{entries:,} entries copied to {file} and verified; readable by you only.",
    )


@app.command()
def restore(
    file: Annotated[
        Path, typer.Argument(metavar="BACKUP", help="What backup wrote.", show_default=False)
    ],
    *,
    back_in_time: Annotated[
        bool,
        typer.Option(
            "--back-in-time", help="Restore a backup that lacks entries, and record that."
        ),
    ] = False,
    reason: Reason = "",
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Put a backup in the place of the ledger.

    A backup that lacks entries is refused, unless you say --back-in-time. Then
    entries and answers are lost, what they cost stays spent, and each chain says so.
    The ledger that is replaced is kept beside it.

    \b
    Example:
      privatest ledger restore ledger-copy.db --back-in-time --reason "disk failure"
    """
    from privatest.ledger import restore as restored  # noqa: PLC0415

    place = ledger or default_ledger()
    done = restored(file, place, back_in_time=back_in_time, reason=reason, by=user())
    if as_json:
        lost = {name: each.to_dict() for name, each in done.lost.items()}
        kept = None if done.kept is None else str(done.kept)
        document = {"heads": _heads(done.heads), "lost": lost, "unknown": done.unknown}
        print_json(document | {"kept": kept})
        return
    page = Page()
    page.line(f"Restored {len(done.heads):,} data sets from {file}.", style="bold")
    for name, each in {} if done.unknown else done.lost.items():
        page.line(
            f"  {name}: {each.entries:,} entries are lost. What they cost stays spent: "
            f"epsilon {each.spent.epsilon:f}, delta {each.spent.delta:f}."
        )
    if done.unknown:
        page.line("What was spent after the backup is not known: lower the budgets by that much.")
    if done.kept is not None:
        page.line(f"The ledger that was replaced is {done.kept}.")
    if done.lost:
        page.line("Heads that were kept do not fit any more: begin a new file of them.")


@app.command()
def export(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="New file to write; - is standard output.", show_default=False
        ),
    ],
    *,
    ledger: LedgerOption = None,
    as_json: options.Json = False,
) -> None:
    """Write all entries as lines of JSON.

    They hold requests and answers, so the file is readable by its owner only.

    \b
    Example:
      privatest ledger export ledger.jsonl
    """
    if file == "-" and as_json:
        raise ParameterError("--json does not go with -: the lines themselves are JSON.")
    with existing_ledger(ledger) as book:
        count = book.export(sys.stdout if file == "-" else file)
    if as_json:
        print_json({"file": file, "entries": count})
    elif file != "-":
        Page().line(f"{count:,} entries written to {file}, readable by you only: it has answers.")


def _heads(heads: Mapping[str, Head]) -> dict[str, dict[str, Any]]:
    """Return the ends of chains as plain values."""
    return {name: {"sequence": end.sequence, "hash": end.hash} for name, end in heads.items()}


def _totals(book: Ledger, name: str) -> Totals:
    """Return the budgets of a data set, or say which ones there are."""
    known = book.datasets()
    if name not in known:
        there = f"it has: {', '.join(known)}" if known else "it has none yet"
        raise ParameterError(f"the ledger has no data set {name!r}; {there}.")
    return book.totals(name)


def _account(totals: Totals, analyst: str | None) -> Account:
    if analyst is None:
        return totals.account
    if analyst not in totals.analysts or totals.analysts[analyst].closed:
        known = [name for name, account in totals.analysts.items() if not account.closed]
        there = f"it has: {', '.join(known)}" if known else "it has none"
        raise ParameterError(f"{totals.dataset!r} has no analyst {analyst!r}; {there}.")
    return totals.analysts[analyst]


def bar(label: str, account: Account) -> str:
    """Draw how much of a budget is spent."""
    used = float(account.used)
    filled = round(used * _BAR)
    spent = account.spent
    cost = f"epsilon {float(spent.epsilon):g} of {float(account.budget.epsilon):g}"
    if account.budget.delta:
        cost += f", delta {float(spent.delta):g} of {float(account.budget.delta):g}"
    if account.closed:
        cost += ", closed"
    return f"{label:<20} {'█' * filled}{'░' * (_BAR - filled)} {100 * used:5.1f}%  {cost}"


def details(body: Mapping[str, Any]) -> str:
    """Return what a reader looks for in an entry: who, what, at which price, how it ended."""
    parts = []
    if body.get("opens") or body.get("closes"):
        parts.append(f"id {_plain(body.get('opens') or body['closes'])[:_ID]}")
    if body.get("analyst"):
        parts.append(f"analyst {_plain(body['analyst'])}")
    costs = {name: _amount(body.get(name, 0)) for name in _COSTS}
    parts += [f"{name} {amount}" for name, amount in costs.items() if amount != "0"]
    if body.get("kind") == "reserved":
        parts.append(words_of(body.get("asked")))
    told = [name for name in ("of", "to", "since") if isinstance(body.get(name), str)]
    parts += [f"{name} {_plain(body[name])}" for name in told]
    if body.get("revoked"):
        parts.append("revoked")
    if body.get("kind") == "restored":
        parts.append(_restored(body))
    if body.get("reason"):
        parts.append(_plain(body["reason"]))
    return ", ".join(parts)


def _restored(body: Mapping[str, Any]) -> str:
    """Return how far a ledger went back."""
    if body.get("unknown"):
        return "from a backup; what was lost is not known"
    carried = body.get("carried", {})
    cost = carried.get("epsilon", "") if isinstance(carried, Mapping) else ""
    return f"{_plain(body.get('entries'))} entries lost, epsilon {_amount(cost)} stays spent"


def words_of(asked: object) -> str:
    """Return a request in one line: its question first, then everything else that was said."""
    if not isinstance(asked, Mapping):
        return "what was asked was not recorded"
    # the record sorts names; a reader wants to know first which test, of what
    names = sorted(asked, key=lambda n: (_FIRST.index(n) if n in _FIRST else len(_FIRST), n))
    rest = [f"{_plain(n)} {_value(asked[n])}" for n in names if n not in ("question", *_COSTS)]
    return "; ".join([_plain(asked.get("question", "")), *rest]).lstrip("; ")


def print_answer(found: Answered) -> None:
    """Print a recorded answer as its command did."""
    from privatest.requests.results import result_from_dict  # noqa: PLC0415

    page, released = Page(), found.released
    document = released if isinstance(released, Mapping) else {"": released}
    result = result_from_dict(document, Budget(found.epsilon, found.delta))
    if isinstance(result, Decision):
        print_result(result, compared=words_of(found.asked), label="asked")
    else:
        page.line(f"  {'asked':<10} {words_of(found.asked)}")
        for line in str(result).splitlines() if result is not None else _lines(document):
            page.line(line)
    page.line(
        f"From the record of {found.dataset}, {found.time.replace('T', ' ')[:19]} UTC, "
        f"id {found.id[:_ID]}. This cost nothing more."
    )


def _lines(released: Mapping[str, Any]) -> Iterator[str]:
    """Yield the public facts of a file that was released."""
    for name, value in released.items():
        yield f"  {_plain(name):<10} {_value(value)}"


def _value(value: object) -> str:
    """Write a value on one line, and shorten it: a request may hold a whole table."""
    if isinstance(value, Mapping):
        text = ", ".join(f"{_plain(name)} {_value(item)}" for name, item in value.items())
    elif isinstance(value, (list, tuple)):
        text = ", ".join(_value(item) for item in value)
    else:
        text = f"{value:g}" if isinstance(value, float) else _plain(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _plain(value: object) -> str:
    """Write a name without what a terminal would take for a command."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(value))


def _amount(value: object) -> str:
    """Write an exact decimal as people do: 0.5, 1e-06."""
    try:
        return f"{float(Decimal(str(value))):g}"
    except (InvalidOperation, OverflowError, ValueError):
        return _plain(value)


def user() -> str:
    """Return who types, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name
        return ""


def _known(
    given: Sequence[str], files: Sequence[Path], key: Path | None
) -> list[Mapping[str, Head | str]]:
    """Return all sets of hashes that were kept: the ledger must agree with each of them."""
    sets: list[Mapping[str, Head | str]] = [_read(file, key) for file in files if file.exists()]
    typed: dict[str, Head | str] = {}
    for text in given:
        name, _, digits = text.rpartition("=")
        if not name or not digits:
            raise ParameterError("--head must be NAME=HASH, as verify prints them.")
        typed[name] = digits.strip().lower()
    return [known for i, known in enumerate([*sets, typed]) if known and known not in sets[:i]]


def _read(file: Path, key: Path | None) -> dict[str, Head | str]:
    from privatest.ledger import Head  # noqa: PLC0415
    from privatest.ledger.verify import key_from, read_heads  # noqa: PLC0415

    if key is not None or _has_lines(file):
        return {**read_heads(file, None if key is None else key_from(key))}
    try:
        document: Any = json.loads(file.read_text(encoding="utf-8"))
        found: dict[str, Head | str] = {
            str(name): Head(int(head["sequence"]), str(head["hash"]))
            for name, head in document["heads"].items()
        }
    except OSError as error:
        raise ParameterError(f"cannot read {file.name!r}: {error.strerror}.") from None
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        raise ParameterError(
            f"{file.name!r} does not hold hashes that `privatest ledger verify --save` wrote."
        ) from None
    return found


def _has_lines(file: Path) -> bool:
    """Return whether head --append wrote a file: each of its lines is a document."""
    try:
        with file.open(encoding="utf-8") as stream:
            return '"body":' in stream.readline()
    except (OSError, UnicodeDecodeError):
        return False
