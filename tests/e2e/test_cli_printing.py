"""A paid answer is recorded before it is printed, and is printed as well as can be."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from typer.main import get_command

from privatest.cli import app, main
from privatest.cli.output import save_picture
from privatest.cli.spending import open_ledger
from privatest.core.errors import LedgerError, ParameterError
from privatest.ledger import Ledger
from privatest.methods.shares import Share
from privatest.synthetic import SyntheticData
from tests import curators
from tests.e2e.command_line import CLEAR, GROUP, refused, table, write

FULL = Path("/dev/full")
COMMAND = [sys.executable, "-m", "privatest.cli"]
BOUNDS = ["--bounds", "visits=0:80"]


def run(
    *arguments: str,
    encoding: str = "utf-8",
    stdout: IO[bytes] | int = subprocess.PIPE,
    stdin: IO[bytes] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env={**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "200"},
        check=False,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def run_here(
    *arguments: str, encoding: str = "utf-8", stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """As :func:`run`, in this process: a second or two less, for what differs in its streams."""
    out, err = io.BytesIO(), io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in (("stdin", io.BytesIO(stdin)), ("stdout", out), ("stderr", err)):
            text = io.TextIOWrapper(stream, encoding=encoding, write_through=True)
            patch.setattr(sys, name, text)
        patch.setenv("COLUMNS", "200")
        code = main(arguments)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@pytest.fixture
def visits(cli) -> str:
    """A file that has a budget."""
    data = write("visits.csv", table())
    assert cli("ledger", "init", "visits", "--epsilon", "1e6").code == 0
    return data


def answers() -> int:
    """How many answers the ledger has."""
    with open_ledger(None) as ledger:
        return sum(entry.kind == "committed" for entry in ledger.history("visits"))


@pytest.mark.parametrize(
    ("encoding", "run"), [("ascii", run), ("cp1252", run_here), ("latin-1", run_here)]
)
def test_a_terminal_without_our_characters(visits, encoding, run):
    renamed = table().rename_columns(
        ["größe" if name == "visits" else name for name in table().column_names]
    )
    write("visits.csv", renamed)
    asked = ["paired", visits, "--before", "age", "--after", "größe", "--epsilon", "1"]
    done = run(*asked, encoding=encoding)
    assert done.returncode == 0, done.stderr
    assert b"p-value" in done.stdout
    assert "größe".encode(encoding, "backslashreplace") in done.stdout
    shown = run("ledger", "show", encoding=encoding)
    assert shown.returncode == 0, shown.stderr
    assert b"epsilon 1 of" in shown.stdout
    refusal = run("mean", visits, "--columns", "größe", "--epsilon", "1", encoding=encoding)
    assert refusal.returncode == 2
    assert refusal.stderr.startswith(b"error: column 'gr")


@pytest.mark.parametrize(("encoding", "run"), [("ascii", run), ("cp1252", run_here)])
def test_the_demo_on_a_poor_terminal(encoding, run):
    done = run("demo", encoding=encoding)
    assert done.returncode == 0, done.stderr
    assert b"########" in done.stdout  # all of the budget is spent


def commands(command: Any = None, *path: str) -> Iterator[tuple[str, ...]]:
    """All commands, as they are typed."""
    yield path
    for name, child in getattr(command or get_command(app), "commands", {}).items():
        yield from commands(child, *path, name)


@pytest.mark.slow
def test_help_on_a_poor_terminal():
    helped = [run_here(*path, "--help", encoding="ascii") for path in commands()]
    assert len(helped) > 30
    for done in (*helped, run_here("--help", encoding="cp1252"), run("ledger", encoding="ascii")):
        assert b"Usage: privatest" in done.stdout
        assert b"error" not in done.stderr


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_who_went_away(visits, form):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(
            *("two-sample", visits, *GROUP, *CLEAR, *form),
            stdout=writing,
        )
    finally:
        os.close(writing)
    assert done.returncode == 141
    assert done.stderr == b""
    assert answers() == 1


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_output_to_a_full_disk(visits, form):
    with FULL.open("wb") as full:
        done = run(
            *("two-sample", visits, *GROUP, *CLEAR, *form),
            stdout=full,
        )
    assert done.returncode == 2
    with open_ledger(None) as ledger:
        (entry,) = (e for e in ledger.history("visits") if e.kind == "committed")
    assert f"privatest ledger answer {entry.body['closes']}" in done.stderr.decode()


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_an_answer_of_the_curator_to_a_full_disk(tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    curators.write(tmp_path)
    assert main(["curator", "register"]) == 0
    Path("request.json").write_text(json.dumps(curators.request()), encoding="utf-8")
    with FULL.open("wb") as full, Path("request.json").open("rb") as asked:
        done = run("curator", "run", "--analyst", "ada", *form, stdout=full, stdin=asked)
    told = done.stderr.decode()
    assert done.returncode == 2
    assert "ask again, which costs nothing more" in told
    assert "No space left" in told
    asked_again = Path("request.json").read_bytes()
    again = run_here("curator", "run", "--analyst", "ada", stdin=asked_again)
    assert b"Answered from the record" in again.stdout


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_what_costs_nothing_to_a_full_disk(visits):
    shown = ["ledger", "show"]
    for command in (shown, [*shown, "--json"], ["check", visits, *BOUNDS], ["schema", visits]):
        with FULL.open("wb") as full:
            done = run(*command, stdout=full)
        assert done.returncode == 2
        message = "error: standard output cannot be written: No space left on device."
        assert done.stderr.decode().strip() == message


@pytest.mark.skipif(os.name != "posix", reason="closes a stream as a shell does")
def test_no_standard_output_at_all(visits):
    words = " ".join(["two-sample", visits, *GROUP, *CLEAR])
    done = subprocess.run(
        f'"{sys.executable}" -m privatest.cli {words} >&- 2>&-', shell=True, check=False
    )
    assert done.returncode == 0
    assert answers() == 1


def test_a_ledger_that_cannot_record_the_answer(cli, visits, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise LedgerError("The ledger cannot be written: disk full.")

    monkeypatch.setattr(Ledger, "commit", full)
    done = cli("two-sample", visits, *GROUP, *CLEAR, "--dataset", "visits", "--json")
    assert done.code == 2
    assert json.loads(done.out)["reject"] is True
    assert "could not be recorded" in done.err
    assert "disk full" in done.err


def test_a_picture_that_cannot_be_written(cli, visits):
    options = ["--membership", "public", "--method", "ttest", "--dataset", "visits"]
    Path("folder.png").mkdir()
    done = cli("two-sample", visits, *GROUP, *options, "--epsilon", "9", "--plot", "folder.png")
    assert done.code == 2
    assert "p-value" in done.out
    assert "folder.png cannot be written" in done.err
    with pytest.raises(ParameterError, match="cannot be written"):
        save_picture(_Unwritable(), Path("a.png"))  # type: ignore[arg-type]


class _Unwritable:
    def savefig(self, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("owner", "command", "output"),
    [
        (Share, ["share", "--plan", "plan.json"], "a.json"),
        (SyntheticData, ["release", *BOUNDS, "--epsilon", "1", "--delta", "1e-6"], "a.parquet"),
    ],
    ids=["share", "release"],
)
def test_a_disk_that_is_full_by_then(cli, monkeypatch, tmp_path_factory, owner, command, output):
    """What was paid for is put elsewhere, and the message says where."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    cost = ["--epsilon", "1", "--delta", "1e-6"]
    assert cli("plan-share", *BOUNDS, *cost, "-o", "plan.json").code == 0
    save = owner.save

    def once(self: object, path: Path) -> None:
        if Path(path).name == output and elsewhere not in Path(path).parents:
            raise ParameterError("path cannot be written: No space left on device.")
        save(self, path)

    monkeypatch.setattr(owner, "save", once)
    done = cli(command[0], write("visits.csv", table()), *command[1:], "-o", output)
    assert done.code == 2
    (found,) = elsewhere.rglob(output)
    assert str(found) in done.err
    assert owner.load(found) is not None
    assert answers() == 1


def test_groups_of_commands_alone_show_their_help(cli):
    for name in ("ledger", "curator"):
        done = cli(name)
        assert done.code == 2
        assert "error" not in done.err
        assert f"Usage: privatest {name}" in done.out + done.err


def test_an_unknown_command_is_named(cli):
    refused(cli("nonsense"), "nonsense")
    assert main(["--version"]) == 0
