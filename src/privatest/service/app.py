"""The application: routes, guards, and what it opens and closes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TextIO

from fastapi import FastAPI
from starlette.middleware.trustedhost import TrustedHostMiddleware

from privatest.curator.config import CuratorConfig
from privatest.service.api import api
from privatest.service.guard import Headers, handle_errors
from privatest.service.house import House
from privatest.service.limits import BodyLimit
from privatest.service.models import VERSION
from privatest.service.watching import Metrics, Watching

__all__ = ["create_app"]

_ABOUT = (
    "A curator answers statistical questions about people's data, and hides each person in the "
    "answer. Every request is priced, charged to a budget that cannot be overspent, and recorded."
)


def create_app(
    config: str | os.PathLike[str],
    *,
    opening: Callable[[str | os.PathLike[str]], House] = House.open,
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
    settings = CuratorConfig.load(config).service

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        house = opening(config)
        app.state.house = house
        try:
            yield
        finally:
            house.close()

    app = FastAPI(
        title="privatest",
        version=VERSION,
        description=_ABOUT,
        lifespan=lifespan,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # its assets come from elsewhere
        redoc_url=None,
    )
    app.include_router(api)
    handle_errors(app)
    metrics = Metrics()
    app.state.metrics = metrics
    hosts = [settings.host, "127.0.0.1", "localhost", "[::1]"]
    app.add_middleware(BodyLimit)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
    app.add_middleware(Headers, secure=settings.is_secure)
    app.add_middleware(Watching, metrics=metrics, stream=log)
    return app
