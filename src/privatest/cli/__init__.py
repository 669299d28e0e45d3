"""The command line: parse, call, print.

Nothing heavy is imported here, so that ``privatest --help`` answers at once: each command
imports what it needs when it runs.
"""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from privatest import __version__
from privatest.cli.audit import audit
from privatest.cli.commands import CommandGroup, loaded
from privatest.cli.curator import curator as curator_app
from privatest.cli.curator import serve
from privatest.cli.data import check, schema
from privatest.cli.demo import demo
from privatest.cli.ledger import app as ledger_app
from privatest.cli.output import OutputError, flush, make_forgiving, print_error, silence
from privatest.cli.plan import app as plan_app
from privatest.cli.questions import reading
from privatest.cli.releases import query, report
from privatest.cli.shares import compare, plan_share, share
from privatest.core.errors import ParameterError, PrivatestError

# The base of all complaints about the command line itself. Typer re-exports only this child of
# it, and its home differs between versions of Typer.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

# pretty_exceptions_enable: rich would print local variables, and those hold people's data.
app = typer.Typer(cls=CommandGroup, pretty_exceptions_enable=False, rich_markup_mode="rich")
app.command("query")(query)
app.command("report")(report)
app.command("plan-share")(plan_share)
app.command("share")(reading(share))
app.command("compare")(compare)
app.add_typer(plan_app, name="plan")
app.add_typer(ledger_app, name="ledger")
app.add_typer(curator_app, name="curator")
app.command("serve")(serve)
app.command("schema")(reading(schema))
app.command("check")(reading(check))
app.command("audit")(audit)
app.command("demo")(demo)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"privatest {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def privatest(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Test hypotheses about people's data, and hide each person in the answer.

    Start with the demo, then give your own file to two-sample.

    \b
    Example:
      privatest demo
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 is success, 2 a mistake of the caller (one line on standard error), 1 a fault of
    privatest, 130 an interruption, 141 a reader who went away (as `head` does). No message
    ever holds a value read from data.
    """
    make_forgiving()
    try:
        code = _run(None if arguments is None else list(arguments))
        flush()
    except SystemExit as ended:
        if ended.code == 0:  # tab completion: Typer has printed all there is
            return 0
        silence()
        return 141  # rich makes this of a BrokenPipeError
    except BrokenPipeError:
        silence()
        return 141
    except OutputError as error:
        silence()
        print_error(f"standard output cannot be written: {error.strerror}.")
        return 2
    return code


@cache
def _command() -> Any:
    """Build all commands, once: whoever calls :func:`main` again does not wait for it."""
    return get_command(app)


def _run(arguments: list[str] | None) -> int:
    try:
        code = _command()(arguments, prog_name="privatest", standalone_mode=False)
    except (BrokenPipeError, OutputError):
        raise
    except PrivatestError as error:
        print_error(*_worded(error, arguments), *_notes(error))
        return 2
    except typer.Abort:
        return 130
    except Exception as error:
        if isinstance(error, _UsageError):
            message = error.format_message()  # type: ignore[attr-defined]
            if message:  # none where a group of commands stands alone: its help was printed
                print_error(message.replace("Value error, ", ""), *_what_is_missing(error))
            return 2
        return _report_fault(error)
    return code if isinstance(code, int) else 0


def _worded(error: PrivatestError, arguments: Sequence[str] | None) -> list[str]:
    """Return an error in the words of the command: its options instead of parameters."""
    parameter = error.parameter if isinstance(error, ParameterError) else ""
    if not parameter and not error.remedy:
        return [str(error)]
    command = _command()
    for word in sys.argv[1:] if arguments is None else arguments:
        command = getattr(loaded(command), "commands", {}).get(word, command)
    known = {each.name: each for each in loaded(command).params}

    def named(name: str) -> str:
        """Return the option, or the name of an argument as the help shows it."""
        if name not in known:
            return name
        is_option = known[name].param_type_name == "option"
        return str(known[name].opts[0] if is_option else known[name].metavar)

    words = str(error)
    if isinstance(error, ParameterError) and parameter:
        words = error.naming(named(parameter))
    remedies = [
        named(name)
        + (f" {shlex.quote(value) if value else each.metavar}" if each.opts[0][0] == "-" else "")
        for name, value in error.remedy.items()
        if (each := known.get(name)) is not None
    ]
    return [words, f"Pass {', or '.join(remedies)}."] if remedies else [words]


def _what_is_missing(error: Exception) -> list[str]:
    """Return what the option or argument is for that was not given, and where all of them are."""
    missing, context = getattr(error, "param", None), getattr(error, "ctx", None)
    if missing is None or context is None or "Missing" not in type(error).__name__:
        return []
    meant = (getattr(missing, "help", None) or "").split("\n")[0].strip()
    path = f"`{context.command_path} --help` has them all."
    return [f"{meant} {path}"] if meant else [path]


def _notes(error: Exception) -> list[str]:
    """Return what was added to an error on its way: what it cost, how to see the answer."""
    return list(getattr(error, "__notes__", ()))


def _report_fault(error: Exception) -> int:
    """Say that something unexpected happened, without its message: that may quote data."""
    if os.environ.get("PRIVATEST_DEBUG") == "1":
        traceback.print_exception(error, file=sys.stderr)
    else:
        kind = type(error).__name__
        words = f"internal error ({kind}); run with PRIVATEST_DEBUG=1 for a traceback."
        print_error(words, *_notes(error))
    return 1
