"""The client on a real socket: certificates, redirects, broken answers."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import privatest as pt
from privatest.client import Client
from privatest.client.transport import Connection, ConnectionLost, Http


class Server(HTTPServer):
    """A server that remembers the tokens it saw."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.seen: list[str] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class Answers(BaseHTTPRequestHandler):
    """Answers by the path that is asked for."""

    server: Server

    def do_GET(self) -> None:
        self.server.seen.append(self.headers.get("Authorization", ""))
        if self.path.endswith("/elsewhere"):
            self.send_response(307)
            self.send_header("Location", f"http://{self.server.address}/api/v1/me")
            self.end_headers()
            return
        body = b'{"name": "ada"}'
        self.send_response(200)
        length = 1000 if self.path.endswith("/broken") else len(body)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def listening(context: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server()
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Return a server's context with a certificate that nobody else vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    pem = serialization.Encoding.PEM
    file.write_bytes(key.private_bytes(pem, form, plain) + made.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context, file


def quick(url: str) -> Client:
    return Client(Connection(Http(url, "pt_secret", 10.0), sleep=lambda _: None))


def test_a_certificate_is_verified(tmp_path, monkeypatch):
    context, file = certificate(tmp_path)
    with listening(context) as server:
        url = f"https://{server.address}"
        with pytest.raises(pt.ServiceError, match="cannot be verified") as caught:
            quick(url).me()
        assert not isinstance(caught.value, ConnectionLost)  # trying again would not help
        assert server.seen == []
        monkeypatch.setenv("SSL_CERT_FILE", str(file))  # an authority of one's own
        assert quick(url).me() == {"name": "ada"}
        assert server.seen == ["Bearer pt_secret"]


def test_a_redirect_is_not_followed():
    with listening() as server:
        transport = Http(f"http://{server.address}", "pt_secret")
        assert transport.send("GET", "/elsewhere", None).status == 307
        assert len(server.seen) == 1
        with pytest.raises(ConnectionLost):
            transport.send("GET", "/broken", None)


def test_an_answer_without_end_is_not_read(monkeypatch):
    monkeypatch.setattr("privatest.client.transport._LARGEST", 5)
    with listening() as server, pytest.raises(pt.ServiceError, match="too large"):
        quick(f"http://{server.address}").me()
