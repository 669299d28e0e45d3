"""Write docs/reference/cli.md from the commands themselves.

Run ``python -m tools.cli_reference``. A test fails when the committed page is out of date.

The page is built from what each command declares, not from the text of ``--help``: that text
changes with the terminal's width and from one release of Typer to the next.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"

INTRODUCTION = """\
# Command line

<!-- Written by `python -m tools.cli_reference`. Do not edit: change the command's help. -->

Every command explains itself with `--help`; this page says the same. `--install-completion` lets
the Tab key complete commands and options in your shell (bash, zsh, fish, PowerShell);
`--show-completion` prints what that adds, to put it in place yourself.
"""
# Typer's own, in words that differ between its versions; the introduction names them.
_COMPLETION = ("install_completion", "show_completion")


def render() -> str:
    """Return the whole page."""
    from typer.main import get_command  # noqa: PLC0415

    from privatest.cli import app  # noqa: PLC0415

    return render_app(get_command(app), "privatest")


def render_app(root: Any, name: str) -> str:
    """Return the page of a Typer or click command and everything below it."""
    sections = [_section(path, command) for path, command in _walk(root, name)]
    return "\n".join([INTRODUCTION, *sections])


# Typed as Any: Typer's commands are click's or its own copy of them, depending on its version.
def _walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    command = loaded(command)
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            yield from _walk(child, f"{path} {name}")


def loaded(command: Any) -> Any:
    """Return a command with its options: some are built when they run."""
    from privatest.cli.commands import loaded as with_options  # noqa: PLC0415

    return with_options(command)


def _section(path: str, command: Any) -> str:
    shown = [
        p for p in command.params if not getattr(p, "hidden", False) and p.name not in _COMPLETION
    ]
    arguments = [p for p in shown if p.param_type_name == "argument"]
    options = [p for p in shown if p.param_type_name == "option"]
    children = {
        name: child for name, child in getattr(command, "commands", {}).items() if not child.hidden
    }
    usage = [path, *(["[OPTIONS]"] if options else []), *map(_argument_name, arguments)]
    if children:
        usage.append("COMMAND")

    # Choices come from the function's own types: Typer keeps them elsewhere in each version.
    hints = get_type_hints(inspect.unwrap(command.callback)) if command.callback else {}
    parts = [f"## {path}\n", _prose(command.help or ""), f"```text\n{' '.join(usage)}\n```\n"]
    if arguments:
        rows = [(f"`{_argument_name(p)}`", _meaning(p, hints)) for p in arguments]
        parts.append(_table("Argument", rows))
    if options:
        parts.append(_table("Option", [(_option_names(p), _meaning(p, hints)) for p in options]))
    if children:
        rows = [(f"`{n}`", _first_paragraph(c.help or "")) for n, c in children.items()]
        parts.append(_table("Command", rows))
    return "\n".join(part for part in parts if part)


def _prose(text: str) -> str:
    r"""Return help as Markdown; a paragraph that click would not wrap (``\b``) is a code block."""
    blocks = []
    for paragraph in _paragraphs(text):
        if paragraph.startswith("\b"):
            # Unwrapped paragraphs may be adjacent; each keeps its own block.
            block = inspect.cleandoc("\n" + paragraph.removeprefix("\b").strip("\n"))
            blocks.append(f"```text\n{block}\n```\n")
        else:
            blocks.append(" ".join(paragraph.split()) + "\n")
    return "\n".join(blocks)


def _paragraphs(text: str) -> list[str]:
    visible = inspect.cleandoc(text).split("\f")[0]  # click hides what follows a form feed
    return [part.strip("\n") for part in visible.split("\n\n") if part.strip()]


def _first_paragraph(text: str) -> str:
    return next((" ".join(p.split()) for p in _paragraphs(text)), "")


def _argument_name(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.name.upper())
    if parameter.nargs == -1 or getattr(parameter, "multiple", False):
        name += "..."
    return name if parameter.required else f"[{name}]"


def _option_names(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in parameter.opts)
    if parameter.secondary_opts:
        names += " / " + ", ".join(f"`{name}`" for name in parameter.secondary_opts)
    return names


def _meaning(parameter: Any, hints: dict[str, Any]) -> str:
    """Return the help of a parameter with its choices, and its default or that it is required."""
    text = " ".join(str(getattr(parameter, "help", None) or "").split())
    notes = []
    if choices := _choices(hints.get(parameter.name)):
        notes.append("one of " + ", ".join(f"`{_plain(choice)}`" for choice in choices))
    if getattr(parameter, "multiple", False):
        notes.append("may be repeated")
    if parameter.required:
        notes.append("required")
    elif default := _default(parameter):
        notes.append(f"default {default}")
    return f"{text} ({'; '.join(notes)})".strip() if notes else text


def _choices(hint: Any) -> list[object]:
    """Return the values of an enum or a Literal, also inside ``list[...]`` or ``... | None``."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [choice for part in get_args(hint) for choice in _choices(part)]


def _default(parameter: Any) -> str:
    default, shown = parameter.default, getattr(parameter, "show_default", True)
    if isinstance(shown, str):
        return shown
    # False is what a flag is when it is not given; click marks "no default" by an enum member.
    unset = isinstance(default, Enum) and default.name == "UNSET"
    if not shown or unset or default is None or default is False or callable(default):
        return ""
    if default is True:
        return f"`{parameter.opts[0]}`"
    if isinstance(default, (list, tuple)):
        return ", ".join(f"`{_plain(item)}`" for item in default)
    return f"`{_plain(default)}`"


def _plain(value: object) -> str:
    return str(value.value if isinstance(value, Enum) else value)


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| {title} | Meaning |", "|---|---|"]
    for cells in rows:
        first, second = (cell.replace("|", "\\|") for cell in cells)
        lines.append(f"| {first} | {second} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")
