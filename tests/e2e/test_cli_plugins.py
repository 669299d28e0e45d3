"""Commands of other distributions: found by entry points, imported when they run."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
import typer
from typer.main import get_command

from privatest.cli import app, commands, main

HELP = """
import sys
from privatest.cli import main
main(sys.argv[1:])
sys.exit("imported" if "privatest_papers" in sys.modules else 0)
"""
greeting = typer.Typer(add_completion=False, help="Greet.")


@greeting.command()
def greet(name: str) -> None:
    """Greet somebody."""
    print(f"hello {name}")


def entry(name: str, value: str = f"{__name__}:greeting") -> EntryPoint:
    return EntryPoint(name, value, commands.GROUP)


@pytest.fixture
def installed(monkeypatch):
    """Return a function that sets which entry points are installed."""

    def install(*entries: EntryPoint) -> None:
        monkeypatch.setitem(sys.modules, __name__, sys.modules[greet.__module__])
        monkeypatch.setattr(commands, "entry_points", lambda group: entries)
        monkeypatch.setattr("privatest.cli._command", lambda: get_command(app))

    return install


def test_the_papers_are_plugged_in(capsys):
    assert main(["reproduce", "list"]) == 0
    assert "kim-schrab-2" in capsys.readouterr().out


def test_help_lists_the_papers_and_does_not_import_them():
    done = subprocess.run(
        [sys.executable, "-c", HELP, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "reproduce" in done.stdout


def test_without_the_papers_help_works_and_the_command_says_what_to_install(installed, capsys):
    installed()
    assert main(["--help"]) == 0
    assert "reproduce" not in capsys.readouterr().out
    for words in (["reproduce"], ["reproduce", "list"], ["reproduce", "--help"]):
        assert main(words) == 2
        assert "pip install ./papers" in capsys.readouterr().err


def test_a_plugin_runs(installed, capsys):
    installed(entry("greet"))
    assert main(["greet", "ada"]) == 0
    assert capsys.readouterr().out == "hello ada\n"


def test_a_plugin_replaces_no_command_of_privatest(installed, capsys):
    installed(entry("two-sample"))
    assert main(["two-sample", "--help"]) == 0
    assert "--epsilon" in capsys.readouterr().out


@pytest.mark.parametrize("value", ["gone_module:app", f"{__name__}:gone"])
def test_a_plugin_that_cannot_be_imported_breaks_only_itself(installed, capsys, value):
    installed(entry("broken", value))
    assert main(["--help"]) == 0
    assert "broken" in capsys.readouterr().out
    assert main(["broken"]) == 2
    assert "cannot be imported: install" in capsys.readouterr().err
