"""What the catalogue says of a method: what it takes, what it needs, what it costs to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privatest.core.privacy import Budget
    from privatest.data.schema import Schema

__all__ = ["Method"]


@dataclass(frozen=True, slots=True)
class Method:
    """One way to answer a question.

    Attributes
    ----------
    function : str
        Module and name of the test, loaded when it is needed.
    about : str
        What it looks at, in a few words for a list of methods.
    part : str
        The part of a request that chooses this method where none is named, or "".
    options : mapping of str to str
        What it takes besides the data, the budget and the level: the option's public name, and
        the function's parameter.
    preset : mapping
        Arguments that it always gets.
    public_groups : str
        Why it needs public group sizes, or "" if it can do without.
    gaussian : bool
        Whether with delta > 0 it is one analytic Gaussian mechanism, which composes better.
    one_column : bool
        Whether it compares one numeric column only, or one on each side.
    unbounded : bool
        Whether its columns need no description: ranks and signs do not depend on bounds.
    aliases : tuple of str
        Other names by which it is found: SciPy's, for example.
    outcomes : bool
        Whether it looks at one column of successes and failures: 0 and 1, or categories.
    categorical : bool
        Whether it takes one categorical column, of each side if there are sides.
    needed : tuple of str
        Options that must be given.
    releases : tuple of str
        What the option ``release`` may be.
    level : bool
        Whether it has a level ``alpha``.
    needs_delta : str
        Why delta has to be above 0, or "" if it may be 0.
    caution : str
        Why a curator offers it only if its custodian names it, or "" if it is always offered:
        an analyst can watch how long an answer takes.
    steps : bool
        Whether it takes long and can tell how far it is (a parameter ``progress``).
    drawn : bool
        Whether what it releases can be drawn; a decision alone cannot.
    foretold : str
        Module and name of the function that says what would be measured and with how much
        noise, from the request and public sizes, or "" if there is none.
    work : str
        Module and name of the function that counts its steps, from the request and public
        sizes, or "" if it is quick or the curator knows how to count them.
    sized : bool
        Whether a release has as many rows as the data where nobody says how many.
    several : bool
        Whether it compares more than two groups too.
    """

    function: str
    options: Mapping[str, str] = field(default_factory=dict)
    preset: Mapping[str, Any] = field(default_factory=dict)
    public_groups: str = ""
    gaussian: bool = False
    one_column: bool = False
    unbounded: bool = False
    aliases: tuple[str, ...] = ()
    outcomes: bool = False
    categorical: bool = False
    needed: tuple[str, ...] = ()
    releases: tuple[str, ...] = ("pvalue", "decision")
    level: bool = True
    needs_delta: str = ""
    caution: str = ""
    steps: bool = False
    drawn: bool = True
    foretold: str = ""
    work: str = ""
    sized: bool = False
    several: bool = False
    about: str = ""
    part: str = ""

    def load(self) -> Callable[..., Any]:
        """Import the function."""
        return _load(self.function)

    def foretell(self, schema: Schema, rows: int, budget: Budget, given: Mapping[str, Any]) -> Any:
        """Return what would be measured with given options, if there is anything to say before."""
        if not self.foretold:
            return []
        return _load(self.foretold)(schema, rows, budget, self.preset["method"], given)

    def count_work(self, schema: Schema, rows: int) -> int:
        """Return about how many numbers it looks at; 0 if nobody counts them here."""
        return int(_load(self.work)(schema, rows)) if self.work else 0


def _load(place: str) -> Callable[..., Any]:
    module, _, name = place.rpartition(".")
    loaded: Callable[..., Any] = getattr(import_module(f"privatest.{module}"), name)
    return loaded
