"""``privatest curator token``: keys for programs, and for a first sign-in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privatest.cli import options
from privatest.cli.output import Page, print_json
from privatest.core.errors import ParameterError

__all__ = ["list_tokens", "make_token", "revoke_token"]

_DEFAULT = Path("curator.toml")
ConfigFile = Annotated[
    Path,
    typer.Option("--config", metavar="FILE", help="The curator's file."),
]


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
    config: ConfigFile = _DEFAULT,
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
    store = Store(settings.service.database)
    try:
        text = new_token(store, name, scopes=scopes, days=days)
        made = find_token(store, text)
    finally:
        store.close()
    assert made is not None
    if as_json:
        print_json({"token": text, **made.to_dict()})
        return
    page = Page()
    page.line(text)
    page.line(f"Token {made.id} of {name} ({', '.join(made.scopes)}), until {made.expires[:10]}.")
    page.line("It is not shown again: only its digest is kept.")


def list_tokens(config: ConfigFile = _DEFAULT, as_json: options.Json = False) -> None:
    """List tokens: whose, what for, until when. The tokens themselves are not kept.

    \b
    Example:
      privatest curator tokens
    """
    from privatest.curator.config import CuratorConfig  # noqa: PLC0415
    from privatest.service.store import Store  # noqa: PLC0415

    store = Store(CuratorConfig.load(config).service.database)
    try:
        found = store.tokens()
    finally:
        store.close()
    if as_json:
        print_json({"items": [token.to_dict() for token in found]})
        return
    page = Page()
    for token in found:
        state = f"until {token.expires[:10]}" if token.is_valid else "ended"
        state = "revoked" if token.revoked else state
        page.line(f"{token.id}  {token.name:<12} {','.join(token.scopes):<12} {state}")
    if not found:
        page.line("There are no tokens: privatest curator token NAME makes one.")


def revoke_token(
    number: Annotated[str, typer.Argument(metavar="ID", help="Id of a token.", show_default=False)],
    config: ConfigFile = _DEFAULT,
    as_json: options.Json = False,
) -> None:
    """Revoke a token: from now on it opens nothing, not even a page that is open.

    \b
    Example:
      privatest curator revoke-token 5f1c0a7be210
    """
    from privatest.curator.config import CuratorConfig  # noqa: PLC0415
    from privatest.service.store import Store  # noqa: PLC0415

    store = Store(CuratorConfig.load(config).service.database)
    try:
        gone = store.revoke(number)
    finally:
        store.close()
    if not gone:
        raise ParameterError("ID must be that of a token that is not revoked yet.")
    if as_json:
        print_json({"id": number, "revoked": True})
    else:
        Page().line(f"Token {number} is revoked.")
