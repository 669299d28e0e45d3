"""Commands that other distributions add to ``privatest``, by entry points.

A distribution declares a Typer app in the group ``privatest.commands``. Its name and summary are
read from its metadata; its code is imported when the command runs, so ``privatest --help`` neither
waits for it nor fails with it.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from privatest.core.errors import ParameterError

__all__ = ["GROUP", "CommandGroup", "PluginCommand"]

GROUP = "privatest.commands"
# Commands of distributions that may not be installed, and how to install them.
_KNOWN = {
    "reproduce": "the experiments of the papers are in the distribution privatest-papers, which "
    "is not installed: run `pip install ./papers` in a clone of privatest."
}


class PluginCommand(TyperCommand):
    """A command that is imported when it runs."""

    def __init__(self, entry: EntryPoint) -> None:
        """Read the help from the metadata of the entry's distribution."""
        summary = entry.dist.metadata["Summary"] if entry.dist else None
        super().__init__(entry.name, help=summary)
        self._entry = entry

    def load(self) -> Any:
        """Import the command."""
        try:
            app = self._entry.load()
        except (ImportError, AttributeError):
            owner = self._entry.dist.name if self._entry.dist else self._entry.module
            raise ParameterError(
                f"the command {self.name} cannot be imported: install {owner} again."
            ) from None
        return get_command(app)

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Return a context of the imported command, which then parses, completes and runs."""
        return self.load().make_context(*args, **kwargs)


def loaded(command: Any) -> Any:
    """Return a command, imported if it is a plug-in's."""
    return command.load() if isinstance(command, PluginCommand) else command


class _MissingCommand(TyperCommand):
    """A command of a distribution that is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(name, hidden=True)

    def make_context(self, *_args: Any, **_kwargs: Any) -> Any:
        """Say what to install."""
        raise ParameterError(_KNOWN[self.name or ""])


class CommandGroup(TyperGroup):
    """The commands of privatest, which no plug-in can replace, and those of plug-ins."""

    def __init__(self, **settings: Any) -> None:
        """Add a command for each entry point that is installed."""
        super().__init__(**settings)
        for entry in entry_points(group=GROUP):
            self.commands.setdefault(entry.name, PluginCommand(entry))
        for name in _KNOWN:
            self.commands.setdefault(name, _MissingCommand(name))
