"""Signing in at an OpenID Connect issuer: no password ever comes here."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from privatest.core.errors import EngineError, ParameterError
from privatest.curator.service_config import ServiceConfig
from privatest.service.people import Forbidden

__all__ = ["Issuer", "local_path"]

RETURN = "/sign-in/return"
_LOCAL = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f-\uffff]*")
_SIGNED = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_FAILED = "The sign-in failed: begin again. If it fails again, tell the custodian."


class IssuerUnreachable(EngineError):
    """The issuer does not answer, or not as it should."""

    def __init__(self) -> None:
        super().__init__("The issuer of sign-ins does not answer: tell the custodian.")


def local_path(text: object) -> str:
    """Return a path of this service, and the first page for anything else."""
    return text if isinstance(text, str) and _LOCAL.fullmatch(text) else "/"


class Issuer:
    """The authorization code flow with PKCE, state and nonce, by Authlib.

    Notes
    -----
    **Invariant**: a subject is returned only from an ID token that the issuer's public keys have
    signed, for this service, for this browser's own attempt, and that has not expired.
    """

    __slots__ = ("_client", "_settings")

    def __init__(self, settings: ServiceConfig) -> None:
        from authlib.integrations.starlette_client import OAuth  # noqa: PLC0415

        assert settings.issuer is not None
        assert settings.client_secret is not None
        try:
            secret = settings.client_secret.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ParameterError(f"client_secret cannot be read: {error.strerror}.") from None
        self._settings = settings
        scope = "openid" if settings.claim == "sub" else "openid email profile"
        self._client: Any = OAuth().register(
            "issuer",
            client_id=settings.client_id,
            client_secret=secret,
            server_metadata_url=settings.issuer.rstrip("/") + "/.well-known/openid-configuration",
            client_kwargs={"scope": scope, "code_challenge_method": "S256", "timeout": 10.0},
        )

    async def redirect(self, request: Request) -> Response:
        """Send the browser to the issuer."""
        for name in [n for n in request.session if n.startswith("_state_")]:
            del request.session[name]  # of attempts that were given up: a cookie is small
        try:
            await self._metadata()
            url = self._settings.url.rstrip("/") + RETURN
            response: Response = await self._client.authorize_redirect(request, url)
        except Exception:  # whatever the network or the issuer did
            raise IssuerUnreachable from None
        return response

    async def subject(self, request: Request) -> str:
        """Return who came back, by the claim that the custodian chose."""
        settings, claims = self._settings, None
        options = {
            "iss": {"essential": True, "values": [settings.issuer]},
            "aud": {"essential": True, "values": [settings.client_id]},
        }
        try:
            await self._metadata()
            token = await self._client.authorize_access_token(
                request, claims_options=options, leeway=30
            )
            # without an ID token that was checked, these would be the issuer's plain words
            claims = token.get("userinfo") if "id_token" in token else None
        except Exception:  # a wrong state, code, nonce, signature, audience, issuer or time
            claims = None
        if not claims:
            raise Forbidden(_FAILED)
        subject = claims.get(settings.claim)
        if settings.claim == "email" and claims.get("email_verified") is not True:
            raise Forbidden("The issuer has not verified this address: tell the custodian.")
        if not isinstance(subject, str) or not subject:
            raise Forbidden(_FAILED)
        return subject

    async def _metadata(self) -> None:
        """Read what the issuer says of itself, and take no signature but one by its own keys."""
        found = await self._client.load_server_metadata()
        named = found.get("id_token_signing_alg_values_supported") or ["RS256"]
        found["id_token_signing_alg_values_supported"] = [n for n in named if n in _SIGNED]
