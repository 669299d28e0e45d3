"""``privatest curator`` and ``serve``: let others test data that they may not see."""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privatest.cli import options
from privatest.cli.ledger import Reason
from privatest.cli.output import (
    Page,
    check_new,
    check_report,
    paid,
    print_either,
    print_error,
    print_json,
    print_note,
    print_result,
    progress,
    working,
    write_file,
    write_report,
)
from privatest.core.errors import LedgerMissing, ParameterError

if TYPE_CHECKING:
    from privatest.curator import Answer, Price


curator = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # rich would print local variables, which hold data
    help="Let others test data that they may not see, within a budget.",
)


# There is no such argument: it is read to say so, and to allow the usual sign for standard input.
Place = Annotated[str, typer.Argument(metavar="[-]", hidden=True, show_default=False)]
Analyst = Annotated[
    str, typer.Option("--analyst", metavar="NAME", help="Who asks.", show_default=False)
]
# Not to a path: this program can write where the custodian can.
_KEEP = (
    "To keep the rows, ask again with --json and write > FILE.json; it costs nothing more. Then: "
    "privatest query FILE.json mean COLUMN"
)
_LONGEST = 100_000  # characters of a request
_OWN = ("127.0.0.1", "::1", "localhost")
_NEEDED = ("authlib", "fastapi", "httpx", "itsdangerous", "jinja2", "uvicorn")


@curator.command("token")
def make_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is.", show_default=False)],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="What it opens: ask, custodian or auditor. May be repeated.",
            show_default="ask",
        ),
    ] = None,
    days: Annotated[int, typer.Option("--days", metavar="NUMBER", help="How long it holds.")] = 90,
    config: options.ConfigFile = options.CONFIG,
    as_json: options.Json = False,
) -> None:
    """Make a token for the service, and show it this once.

    \b
    Example:
      privatest curator token ada
      privatest curator token carol --scope custodian --days 30
    """
    from privatest.curator.config import CuratorConfig  # noqa: PLC0415
    from privatest.service.auth import find_token, new_token  # noqa: PLC0415
    from privatest.service.store import Store  # noqa: PLC0415

    settings = CuratorConfig.load(config)
    scopes = scope or ["ask"]
    if "ask" in scopes and name not in settings.analysts:
        known = ", ".join(settings.analysts) or "none"
        raise ParameterError(
            f"NAME must be an analyst of {config.name} to ask; it has {known}. "
            "For others pass --scope custodian or --scope auditor."
        )
    with closing(Store(settings.service.database)) as store:
        text = new_token(store, name, scopes=scopes, days=days)
        token = find_token(store, text)
    assert token is not None
    print_either(
        as_json,
        {"token": text, **token.to_dict()},
        text,
        f"Token {token.id} of {name} ({', '.join(token.scopes)}), until {token.expires[:10]}.",
        "It is not shown again: only its digest is kept.",
    )


@curator.command("tokens")
def list_tokens(config: options.ConfigFile = options.CONFIG, as_json: options.Json = False) -> None:
    """List tokens: whose, what for, until when. The tokens themselves are not kept.

    \b
    Example:
      privatest curator tokens
    """
    from privatest.curator.config import CuratorConfig  # noqa: PLC0415
    from privatest.service.store import Store  # noqa: PLC0415

    with closing(Store(CuratorConfig.load(config).service.database)) as store:
        tokens = store.tokens()
    lines = []
    for token in tokens:
        state = f"until {token.expires[:10]}" if token.is_valid else "ended"
        state = "revoked" if token.revoked else state
        lines.append(f"{token.id}  {token.name:<12} {','.join(token.scopes):<12} {state}")
    nothing = ["There are no tokens: privatest curator token NAME makes one."]
    print_either(as_json, {"items": [token.to_dict() for token in tokens]}, *lines or nothing)


@curator.command("revoke-token")
def revoke_token(
    number: Annotated[str, typer.Argument(metavar="ID", help="Id of a token.", show_default=False)],
    config: options.ConfigFile = options.CONFIG,
    as_json: options.Json = False,
) -> None:
    """Revoke a token: from now on it opens nothing, not even a page that is open.

    \b
    Example:
      privatest curator revoke-token 5f1c0a7be210
    """
    from privatest.curator.config import CuratorConfig  # noqa: PLC0415
    from privatest.service.store import Store  # noqa: PLC0415

    with closing(Store(CuratorConfig.load(config).service.database)) as store:
        revoked = store.revoke(number)
    if not revoked:
        raise ParameterError("ID must be that of a token that is not revoked yet.")
    print_either(as_json, {"id": number, "revoked": True}, f"Token {number} is revoked.")


@curator.command("init")
def init(
    config: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where to write it.")
    ] = options.CONFIG,
    force: options.Force = False,
) -> None:
    """Write an example of the curator's file, to be changed by hand.

    \b
    Example:
      privatest curator init
    """
    from privatest.curator.config import EXAMPLE  # noqa: PLC0415

    check_new(config, "FILE", force)
    write_file(config, EXAMPLE)
    Page().line(f"Wrote {config}. Change it, then run: privatest curator check")


@curator.command("check")
def check(config: options.ConfigFile = options.CONFIG) -> None:
    """Explain every mistake in the curator's file, with its line.

    Data is not read: `privatest curator register` does that.

    \b
    Example:
      privatest curator check --config curator.toml
    """
    from privatest.curator import Curator  # noqa: PLC0415
    from privatest.curator.config import read_config  # noqa: PLC0415

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
    config: options.ConfigFile = options.CONFIG,
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
    config: options.ConfigFile = options.CONFIG,
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
    from privatest.curator import Curator  # noqa: PLC0415
    from privatest.curator.answers import facts_page  # noqa: PLC0415

    with Curator.open(config) as opened:
        document = opened.facts(name)
    if output is not None:
        write_file(output, facts_page(document))
    lines = [
        f"{name.replace('_', ' ')}: {', '.join(v) if isinstance(v, (list, dict)) else v}"
        for name, v in document.items()
    ]
    print_either(as_json, document, *lines)


@curator.command("calibrate")
def calibrate(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Data sets.", show_default="all that are registered"),
    ] = None,
    config: options.ConfigFile = options.CONFIG,
    runs: Annotated[
        int, typer.Option("--runs", metavar="COUNT", min=1, help="Measurements of each method.")
    ] = 5,
    as_json: options.Json = False,
) -> None:
    """Measure how long answers take, so that they can come at public times.

    Every method that is offered runs on made-up rows of the same number. No private
    row is read and no budget is spent. Twice the longest time becomes the response
    time: answers that come through workers are given at its multiples. Run it when
    data sets are registered, on the machine that will answer, while it is as busy
    as it will be.

    \b
    Example:
      privatest curator calibrate visits
    """
    from privatest.curator.calibration import calibrate as measure  # noqa: PLC0415
    from privatest.curator.config import CuratorConfig  # noqa: PLC0415
    from privatest.curator.timing import response_time  # noqa: PLC0415
    from privatest.requests.catalogue import find  # noqa: PLC0415

    settings = CuratorConfig.load(config)
    with progress("Measuring on made-up rows", counted=True) as told:
        times = measure(settings, names or (), runs=runs, progress=told)
    shown: dict[str, dict[str, Any]] = {
        name: {
            which: {
                "seconds": each.seconds,
                "response_time": response_time(find(*which.split("/"))[1], each.seconds),
            }
            for which, each in measured.items()
        }
        for name, measured in times.datasets.items()
    }
    print_either(
        as_json,
        {"date": times.date, "machine": dict(times.machine), "datasets": shown},
        f"{'data set':<12} {'question/method':<28} {'measured':>9} {'answers after':>14}",
        *(
            f"{name:<12} {which:<28} {row['seconds']:>7.2f} s {row['response_time']:>12.2f} s"
            for name, rows in shown.items()
            for which, row in rows.items()
        ),
        f"Kept in {settings.times.name}.",
    )


@curator.command("run")
def run(
    place: Place = "-",
    *,
    analyst: Analyst,
    config: options.ConfigFile = options.CONFIG,
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


@curator.command("price")
def price(
    place: Place = "-",
    *,
    analyst: Analyst,
    config: options.ConfigFile = options.CONFIG,
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


@curator.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Analyst.", show_default=False)],
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Let the analyst ask again.")] = False,
    reason: Reason = "",
    config: options.ConfigFile = options.CONFIG,
    as_json: options.Json = False,
) -> None:
    """Let an analyst ask nothing more, from now on.

    They cannot see recorded answers either. What was spent stays spent, and all
    entries stay. It is recorded, and holds until you say --undo, whatever the
    curator's file says.

    \b
    Example:
      privatest curator revoke ada --reason "left the team"
    """
    from privatest.curator import Curator  # noqa: PLC0415

    with Curator.open(config) as opened:
        changed = opened.revoke(name, undo=undo, reason=reason)
    how = "may ask again" if undo else "may not ask any more"
    where = ", ".join(changed) if changed else "nothing changed"
    document = {"analyst": name, "revoked": not undo, "changed": changed}
    print_either(as_json, document, f"{name} {how}: {where}.")


@curator.command("renew")
def renew(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Data sets.", show_default="all that declare a period"),
    ] = None,
    *,
    config: options.ConfigFile = options.CONFIG,
    as_json: options.Json = False,
) -> None:
    """Give data sets their budgets anew, once in each period that the file declares.

    Run it as often as you like: it does nothing until the next period. What was
    spent before stays on record. People are protected by one budget in each period,
    and after k periods by k of them together: k times epsilon and delta.

    \b
    Example:
      privatest curator renew
    """
    from privatest.curator import Curator  # noqa: PLC0415

    with Curator.open(config) as opened:
        datasets = opened.config.datasets
        wanted = names or [each for each in datasets if datasets[each].renew is not None]
        done = {each: opened.renew(each) for each in wanted}
    words = {True: "a new period, with its whole budget", False: "not before the next period"}
    lines = [f"{each}: {words[renewed]}." for each, renewed in done.items()]
    nothing = ['No data set declares a period: write renew = "yearly" into its table.']
    print_either(as_json, {"renewed": done}, *lines or nothing)


def _print_answer(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        print_json(answer.to_dict())
        return
    print_result(answer.result, compared=answer.words, label=answer.label)
    if "parquet" in answer.result.to_dict():
        Page().line(_KEEP)
    if answer.recorded:
        Page().line("Answered from the record: you asked this before, and it cost nothing now.")


def _print_price(price: Price, *, as_json: bool) -> None:
    where = price.dataset if price.part is None else f"{price.dataset}, part {price.part}"
    lines = [
        f"Price: {price.budget}, charged to {where}.",
        "The budget has that left." if price.affordable else "The budget is too small.",
    ]
    if price.recorded:
        lines = [f"Nothing: the answer about {where} is in the record."]
    print_either(as_json, price.to_dict(), *lines)


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


def serve(
    config: options.ConfigFile = options.CONFIG,
    host: Annotated[str, typer.Option(metavar="NAME", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, max=65535, help="Where to listen.")
    ] = 8000,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Certificate for TLS, in PEM.", show_default=False),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its private key.", show_default=False)
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Believe what a proxy on this machine says.")
    ] = False,
) -> None:
    """Serve the curator to people with a browser or a token.

    It needs a curator.toml whose data sets are registered, and tokens
    (privatest curator token NAME) or an issuer to sign in at.

    \b
    Example:
      privatest serve --port 8000
    """
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ParameterError('serve needs more packages: pip install "privatest[server]".')
    if (certificate is None) != (key is None):
        raise ParameterError("pass --certificate and --key together.")
    import uvicorn  # noqa: PLC0415

    from privatest.curator import Curator  # noqa: PLC0415
    from privatest.service import create_app  # noqa: PLC0415
    from privatest.service.auth import lock_curator  # noqa: PLC0415

    Curator.open(config).close()  # what is wrong with it is said in a line, before anything begins
    app = create_app(config)
    scheme = "http" if certificate is None else "https"
    _check_certificate(certificate, key)
    listening = _listen(host, port)
    alone = lock_curator(config)
    if certificate is None and not behind_proxy and host not in _OWN:
        print_note(
            "Warning: others on the network can read tokens and answers on their way. Pass "
            "--certificate and --key, or put it behind a proxy with TLS (--behind-proxy)."
        )
    print_note(f"Serving {config} at {scheme}://{host}:{port} (stop with Ctrl+C).")
    settings = uvicorn.Config(
        app,
        ssl_certfile=None if certificate is None else str(certificate),
        ssl_keyfile=None if key is None else str(key),
        proxy_headers=behind_proxy,
        server_header=False,
        access_log=False,  # its lines hold whole addresses; the service has a log of its own
        log_level="warning",
        timeout_graceful_shutdown=60,
    )
    with suppress(KeyboardInterrupt):  # it has stopped in order by then
        uvicorn.Server(settings).run(sockets=[listening])
    os.close(alone)


def _check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Refuse a certificate that cannot be used before anything is begun."""
    if certificate is None or key is None:
        return
    for name, file in (("certificate", certificate), ("key", key)):
        try:
            file.read_bytes()
        except OSError as error:
            raise ParameterError(f"{name} cannot be read: {error.strerror}.") from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError):
        raise ParameterError(
            "certificate and key must be a pair in PEM, the key without a passphrase."
        ) from None


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound, or say why there is none: before anything is begun."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, OverflowError):
        raise ParameterError("host must be a name or an address of this machine.") from None
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise ParameterError(
            f"port {port} of {host} cannot be used: {error.strerror}. Stop what uses it, or choose "
            "another with --port."
        ) from None
    return listening
