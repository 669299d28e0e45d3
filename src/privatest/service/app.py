"""The application: routes, middleware, and what it opens and closes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TextIO

from fastapi import FastAPI
from starlette.middleware.sessions import SessionMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles

from privatest.curator.config import CuratorConfig
from privatest.service.api import VERSION, api
from privatest.service.auth import EndedSessions, Issuer, cookie_settings
from privatest.service.errors import add_error_handlers
from privatest.service.middleware import BodyLimit, Metrics, RateLimit, RequestLog, SecurityHeaders
from privatest.service.pages import error_page, pages
from privatest.service.state import ServiceState

_ABOUT = (
    "A curator answers statistical questions about people's data, and hides each person in the "
    "answer. Every request is priced, charged to a budget that cannot be overspent, and recorded."
)
_SIGN_INS = 20  # attempts of one address in a minute


def create_app(
    config: str | os.PathLike[str],
    *,
    opening: Callable[[str | os.PathLike[str]], ServiceState] = ServiceState.open,
    log: TextIO | None = None,
) -> FastAPI:
    """Return the service of a curator's file.

    Parameters
    ----------
    config : path
        ``curator.toml``.
    opening : callable
        How it is opened; tests have another way.
    log : text file, optional
        Where a line is written for each request; by default standard error.
    """
    loaded = CuratorConfig.load(config)
    settings = loaded.service

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.service = opening(config)
        try:
            yield
        finally:
            app.state.service.close()

    app = FastAPI(
        title="privatest",
        version=VERSION,
        description=_ABOUT,
        lifespan=lifespan,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # its assets come from elsewhere
        redoc_url=None,
    )
    app.state.issuer = None if settings.issuer is None else Issuer(settings)
    app.state.ended = EndedSessions()
    app.state.attempts = RateLimit(_SIGN_INS)
    app.state.metrics = Metrics()
    app.include_router(api)
    app.include_router(pages)
    app.mount("/static", StaticFiles(packages=[("privatest.service", "static")]))
    add_error_handlers(app, error_page)
    hosts = [settings.host, "127.0.0.1", "localhost", "[::1]"]
    app.add_middleware(SessionMiddleware, **cookie_settings(loaded))
    app.add_middleware(BodyLimit)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
    app.add_middleware(SecurityHeaders, secure=settings.is_secure)
    app.add_middleware(RequestLog, metrics=app.state.metrics, stream=log)
    return app
