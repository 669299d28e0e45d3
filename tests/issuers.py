"""An OpenID Connect issuer for tests: it signs in a chosen person at once, and lies on demand."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import uvicorn
from fastapi import FastAPI, Form, Request
from fastapi.responses import JSONResponse, RedirectResponse
from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "privatest", "a secret of the tests"


@contextmanager
def running(app: Any, port: int) -> Iterator[str]:
    """Serve an application in a thread."""
    settings = uvicorn.Config(app, port=port, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    for _ in range(400):
        if server.started:
            break
        time.sleep(0.025)
    assert server.started
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@dataclass
class TestIssuer:
    """What it says next.

    ``lies`` are claims that it puts in the place of true ones; ``other_key`` signs with a key that
    it does not publish; ``unsigned`` says who it was in plain words.
    """

    __test__ = False

    url: str
    subject: str = "ada-at-the-issuer"
    lies: dict[str, Any] = field(default_factory=dict)
    other_key: bool = False
    unsigned: bool = False
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "1"}))
    unknown: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "1"}))

    def id_token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.url,
            "sub": self.subject,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
        }
        claims = {k: v for k, v in (claims | self.lies).items() if v is not None}
        key = self.unknown if self.other_key else self.key
        return jwt.encode({"alg": "RS256", "kid": "1"}, claims, key)

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/.well-known/openid-configuration")
        def metadata() -> dict[str, Any]:
            return {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                "id_token_signing_alg_values_supported": ["RS256", "none", "HS256"],
            }

        @app.get("/keys")
        def keys() -> dict[str, Any]:
            return {"keys": [self.key.as_dict(private=False)]}

        @app.get("/authorize")
        def authorize(request: Request) -> RedirectResponse:
            asked = dict(request.query_params)
            assert asked["code_challenge_method"] == "S256"
            code = base64.urlsafe_b64encode(os.urandom(12)).decode()
            self.codes[code] = asked
            words = urlencode({"code": code, "state": asked["state"]})
            return RedirectResponse(f"{asked['redirect_uri']}?{words}", 302)

        @app.post("/token")
        def token(
            request: Request, code: str = Form(), code_verifier: str = Form()
        ) -> JSONResponse:
            asked = self.codes.pop(code, None)
            known = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
            digest = hashlib.sha256(code_verifier.encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            if (
                asked is None
                or asked["code_challenge"] != challenge
                or request.headers.get("authorization") != f"Basic {known}"
            ):
                return JSONResponse({"error": "invalid_grant"}, 400)
            told: dict[str, Any] = {"access_token": "x", "token_type": "Bearer"}
            if self.unsigned:
                told["userinfo"] = {"sub": self.subject}
            else:
                told["id_token"] = self.id_token(asked)
            return JSONResponse(told)

        return app


@contextmanager
def issuing() -> Iterator[TestIssuer]:
    """Run an issuer."""
    port = free_port()
    issuer = TestIssuer(f"http://127.0.0.1:{port}")
    with running(issuer.app(), port):
        yield issuer
