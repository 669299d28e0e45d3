"""``privatest serve``: the curator as a service, with a page and an API."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from privatest.cli.output import print_note
from privatest.core.errors import ParameterError

__all__ = ["serve"]

_DEFAULT = Path("curator.toml")
_NEEDED = ("authlib", "fastapi", "httpx", "itsdangerous", "jinja2", "uvicorn")


def serve(
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE", help="The curator's file.")
    ] = _DEFAULT,
    host: Annotated[str, typer.Option(metavar="NAME", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="NUMBER", help="Where to listen.")] = 8000,
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
        raise ParameterError("certificate and key go together.").with_flags(
            "Pass --certificate and --key."
        )
    import uvicorn  # noqa: PLC0415

    from privatest.service import create_app  # noqa: PLC0415

    app = create_app(config)
    scheme = "http" if certificate is None else "https"
    print_note(f"Serving {config} at {scheme}://{host}:{port} (stop with Ctrl+C).")
    uvicorn.run(
        app,
        host=host,
        port=port,
        ssl_certfile=None if certificate is None else str(certificate),
        ssl_keyfile=None if key is None else str(key),
        proxy_headers=behind_proxy,
        server_header=False,
        access_log=False,  # its lines hold whole addresses; the service has a log of its own
        log_level="warning",
        timeout_graceful_shutdown=60,
    )
