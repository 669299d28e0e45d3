"""The page: the curator for people with a browser. It takes cookies, the API takes tokens."""

from __future__ import annotations

from fastapi import APIRouter

from privatest.service.pages.asking import asking_pages
from privatest.service.pages.common import error_page
from privatest.service.pages.custody import custody_pages
from privatest.service.pages.reading import reading_pages
from privatest.service.pages.signing import signing_pages

__all__ = ["PARTS", "error_page", "pages"]

PARTS = (signing_pages, asking_pages, reading_pages, custody_pages)

pages = APIRouter(include_in_schema=False)
for part in PARTS:
    pages.include_router(part)
