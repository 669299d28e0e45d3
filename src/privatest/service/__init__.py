"""The curator over HTTP: who asks, what they may see, and when they are answered."""

from __future__ import annotations

from privatest.service.app import create_app

__all__ = ["create_app"]
