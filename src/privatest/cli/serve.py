"""``privatest serve``: the curator as a service, with a page and an API."""

from __future__ import annotations

import os
import socket
import ssl
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from privatest.cli.output import print_note
from privatest.core.errors import ParameterError

__all__ = ["serve"]

_DEFAULT = Path("curator.toml")
_OWN = ("127.0.0.1", "::1", "localhost")
_NEEDED = ("authlib", "fastapi", "httpx", "itsdangerous", "jinja2", "uvicorn")


def serve(
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE", help="The curator's file.")
    ] = _DEFAULT,
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
