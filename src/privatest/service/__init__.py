"""The curator over HTTP: an API for programs with tokens, and pages for people in a browser."""

from privatest.service.app import create_app

__all__ = ["create_app"]
