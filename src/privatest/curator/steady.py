"""Refuse what takes its time, its memory or its luck from the values it meets.

An analyst names distributions and tests, and can watch how long an answer takes and whether
there is one. Neither is covered by noise. So a curator takes only what does the same for all
values of the same public sizes. Measured: benchmarks/privacy/oracles.py.
"""

from __future__ import annotations

from collections.abc import Collection

from privatest.core.errors import ParameterError
from privatest.questions import Request

__all__ = ["refuse_unsteady"]

_WHY = "others take longer for some values than for others, or fail, and that would tell them"


def refuse_unsteady(request: Request) -> None:
    """Refuse a distribution, a family or a subtest that is not on a short list."""
    from privatest.any_test.subtests import OWN_TESTS  # noqa: PLC0415 - only when it is needed
    from privatest.goodness_of_fit.closed_forms import CLOSED_FORMS  # noqa: PLC0415
    from privatest.goodness_of_fit.reference_cdf import distribution_name  # noqa: PLC0415
    from privatest.statistics.families import BUILT_IN, plain_name  # noqa: PLC0415

    parts, options = request.parts, request.options
    if "dist" in parts:
        _require("dist", distribution_name(_text("dist", parts["dist"])), CLOSED_FORMS)
    if "family" in parts:
        _require("family", plain_name(_text("family", parts["family"])), BUILT_IN)
    if "subtest" in options:
        _require("subtest", _text("subtest", options["subtest"]), OWN_TESTS)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ParameterError(f"{name} must be text.")
    return value


def _require(name: str, value: str, steady: Collection[str]) -> None:
    if value not in steady:
        raise ParameterError(f"{name}: a curator takes {', '.join(steady)}; {_WHY}.")
