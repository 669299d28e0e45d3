"""Commands that are built when they run: those of the questions, and those of plug-ins.

A distribution adds a command to ``privatest`` by declaring a Typer app in the group of entry points
``privatest.commands``. Its name and summary are read from its metadata; its code is imported when
the command runs, so ``privatest --help`` neither waits for it nor fails with it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from privatest.cli import questions
from privatest.core.errors import ParameterError

GROUP = "privatest.commands"
# Commands of distributions that may not be installed, and how to install them.
_KNOWN = {
    "reproduce": "the experiments of the papers are in the distribution privatest-papers, which "
    "is not installed: run `pip install ./papers` in a clone of privatest."
}


class LazyCommand(TyperCommand):
    """A command with a name and a summary, whose options are known when it is loaded."""

    def __init__(self, name: str, summary: str | None, load: Callable[[], Any], **more: Any):
        super().__init__(name, help=summary, **more)
        self.load = load

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Return a context of the loaded command, which then parses, completes and runs."""
        return self.load().make_context(*args, **kwargs)


def loaded(command: Any) -> Any:
    """Return a command with its options."""
    return command.load() if isinstance(command, LazyCommand) else command


class CommandGroup(TyperGroup):
    """The commands of privatest, which no plug-in can replace, and those of plug-ins."""

    def __init__(self, **settings: Any) -> None:
        """Add the commands of questions, and one for each entry point that is installed."""
        super().__init__(**settings)
        own, self.commands = self.commands, {}
        for name, text in questions.HELP.items():
            self.commands[name] = LazyCommand(name, inspect.cleandoc(text), _question(name))
        self.commands.update(own)
        for entry in entry_points(group=GROUP):
            summary = entry.dist.metadata["Summary"] if entry.dist else None
            command = LazyCommand(entry.name, summary, _plugin(entry))
            self.commands.setdefault(entry.name, command)
        for name in _KNOWN:
            missing = LazyCommand(name, None, _not_installed(name), hidden=True)
            self.commands.setdefault(name, missing)


def _question(name: str) -> Callable[[], Any]:
    def load() -> Any:
        app = typer.Typer(add_completion=False, rich_markup_mode="rich")
        app.command(name)(questions.command(name))
        return get_command(app)

    return load


def _plugin(entry: EntryPoint) -> Callable[[], Any]:
    def load() -> Any:
        try:
            app = entry.load()
        except (ImportError, AttributeError):
            owner = entry.dist.name if entry.dist else entry.module
            raise ParameterError(
                f"the command {entry.name} cannot be imported: install {owner} again."
            ) from None
        return get_command(app)

    return load


def _not_installed(name: str) -> Callable[[], Any]:
    def load() -> Any:
        raise ParameterError(_KNOWN[name])

    return load
