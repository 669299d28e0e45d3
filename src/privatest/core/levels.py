"""How the level of a test is known: by proof for every sample size, or by measurement.

A public test declares it beside its definition. Its results, the table of docs/guarantees.md and
the tests of both read the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from types import MappingProxyType
from typing import Any, Literal, TypeVar, cast, get_args

__all__ = ["LEVELS", "LEVEL_WORDS", "DeclaredLevel", "Level", "declare_level", "declared_level"]

Level = Literal["valid", "measured", "experimental"]
LEVELS: tuple[str, ...] = get_args(Level)
LEVEL_WORDS: Mapping[Level, str] = MappingProxyType(
    {
        "valid": "valid: proved for every sample size",
        "measured": "measured: by simulations, not proved",
        "experimental": "experimental: a true hypothesis may be rejected too often",
    }
)

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class DeclaredLevel:
    """What a test declares about its level.

    Attributes
    ----------
    usual : {"valid", "measured", "experimental"}
        "valid": P(p <= a) <= a under the null hypothesis is proved for every sample size.
        "measured": the p-value is an approximation; simulations show how often a true hypothesis
        is rejected. "experimental": it may be rejected too often.
    exceptions : mapping of str to str
        Other words that a result may carry, and when.
    """

    usual: Level
    exceptions: Mapping[str, str]

    @property
    def words(self) -> tuple[str, ...]:
        """All words that a result may carry."""
        return (self.usual, *self.exceptions)

    def __str__(self) -> str:
        """Write the declaration for a table."""
        return "; ".join([self.usual, *(f"{w}: {when}" for w, when in self.exceptions.items())])


def declare_level(usual: Level, **exceptions: str) -> Callable[[Function], Function]:
    """Declare the level of a public test, and mark its results with it.

    Parameters
    ----------
    usual : {"valid", "measured", "experimental"}
        The word for a result that carries none.
    **exceptions : str
        Other words, and when they apply. The test passes ``level=`` to its result then.
    """
    declared = DeclaredLevel(usual, MappingProxyType(exceptions))
    unknown = {*declared.words} - {*LEVELS}
    if unknown:
        raise ValueError(f"a level is one of {', '.join(LEVELS)}; got {', '.join(unknown)}.")

    def decorate(function: Function) -> Function:
        @wraps(function)
        def test(*arguments: Any, **options: Any) -> Any:
            return _marked(function(*arguments, **options), declared, function.__name__)

        test.__dict__["declared_level"] = declared
        return cast("Function", test)

    return decorate


def declared_level(function: Callable[..., Any]) -> DeclaredLevel | None:
    """Return what a function declares about its level; None if it tests nothing."""
    return getattr(function, "declared_level", None)


def _marked(result: Any, declared: DeclaredLevel, function: str) -> Any:
    """Return the result with its level and its method id; of a mapping, each of its results."""
    if isinstance(result, Mapping):
        return {name: _marked(each, declared, function) for name, each in result.items()}
    if not hasattr(result, "level"):
        return result  # not the result of a test: tests replace mechanisms by stand-ins
    if result.level not in (None, *declared.words):
        raise AssertionError(f"a result is {result.level}, which its test does not declare.")
    return replace(
        result, level=result.level or declared.usual, method_id=result.method_id or function
    )
