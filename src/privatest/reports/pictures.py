"""Pictures inside a page: one for light and one for dark, with words for those who cannot see."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from privatest.core.errors import ParameterError
from privatest.plots.style import MISSING, plain_text, svg, themed
from privatest.reports.markup import Markup, tag

__all__ = ["picture"]


def picture(draw: Callable[[], Any], words: str, caption: str = "") -> Markup:
    """Return a figure, or the reason why there is none.

    Parameters
    ----------
    draw : callable
        Draws with matplotlib, in the colours of :func:`privatest.plots.style.colours`.
    words : str
        What is seen, for those who cannot.
    caption : str
        A line below; by default the same words.
    """
    try:
        light, dark = (_data(draw, theme) for theme in ("light", "dark"))
    except (ParameterError, ModuleNotFoundError) as error:
        missing = isinstance(error, ModuleNotFoundError)
        return tag("p", MISSING if missing else str(error), class_="soft")
    # printed pages are light, whatever the screen is
    source = tag("source", media="screen and (prefers-color-scheme: dark)", srcset=dark)
    shown = tag("picture", source, tag("img", alt=words, src=light))
    return tag("figure", shown, tag("figcaption", caption or words))


def _data(draw: Callable[[], Any], theme: str) -> str:
    with themed(theme), plain_text():
        drawn = svg(draw())
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}"
