"""One way to spend: reserve, run, commit or fail.

Commands, the curator and functions of the library inside ``with privatest.budget(...)`` spend
through a ``Charge``. The ledger implements the protocol of who pays (privatest.ledger.spending).

Public functions are wrapped where they are exported (:func:`charged`). All of them pass two places
that make them pay: where data comes in, and where secret noise is drawn. A function that draws
noise while a budget is open, and was not wrapped, is refused: no function can be forgotten.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import wraps
from threading import Lock
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np

from privatest.core.errors import PrivacyError, PrivatestError
from privatest.core.privacy import Budget

_LONGEST_WORD, _MOST_WORDS = 200, 20
_MOST_ROWS = 10_000  # of synthetic data that is recorded; more belong in a file
_WHY = "whether this fails may depend on people's values, so the failure tells of them"


class Hold(Protocol):
    """Budget that was reserved: it is spent, whatever happens."""

    def commit(self, released: Any) -> None:
        """Record what was released (JSON)."""

    def fail(self, error: BaseException) -> None:
        """Record that nothing was released."""


class Payer(Protocol):
    """An account that can be charged."""

    @property
    def key(self) -> tuple[str, str]:
        """Which account it is: one that is open twice pays once."""

    def affords(self, cost: Budget) -> bool:
        """Return whether a reservation would be granted; PrivacyError if it cannot pay here."""

    def reserve(self, cost: Budget, asked: Mapping[str, Any]) -> Hold:
        """Spend, or raise BudgetError; ``asked`` is the request in public words."""


class Charge:
    """What one computation costs: reserved once, then committed, or failed if its block fails.

    Parameters
    ----------
    payers : sequence of Payer
        Who pays; without any nothing is recorded.
    request : callable
        Returns the cost, and the request in public words. It is called when it is time to pay.

    Notes
    -----
    **Privacy**: ``pay`` before data is looked at. There are no refunds.
    """

    __slots__ = ("_lock", "_paid", "_request", "committed", "ended", "holds", "payers")

    def __init__(
        self, payers: Sequence[Payer], request: Callable[[], tuple[Budget, Mapping[str, Any]]]
    ) -> None:
        self.payers = payers
        self.holds: list[Any] = []
        self.committed: list[Any] = []
        self.ended = False  # whether the computation is over: it pays for nothing more
        self._request, self._lock, self._paid = request, Lock(), False

    def affordable(self) -> bool:
        """Return whether ``pay`` would be granted by all payers; nothing is spent."""
        cost, _ = self._request()
        return all(payer.affords(cost) for payer in self.payers)

    def pay(self) -> None:
        """Reserve once; nothing is spent if one of several payers cannot."""
        with self._lock:
            if self._paid or not self.payers:
                return
            cost, asked = self._request()
            payers = list(self.payers)
            if len(payers) > 1:
                payers.sort(key=lambda payer: payer.affords(cost))
            for payer in payers:
                self.holds.append(payer.reserve(cost, asked))
            self._paid = True

    def commit(self, released: Any) -> None:
        """Record what was released, with every payer that can."""
        errors = []
        for hold in self.holds:
            try:
                hold.commit(released)
                self.committed.append(hold)
            except PrivatestError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def __enter__(self) -> Self:
        """Run the computation."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Record a failure; the error of the computation itself is the one to be seen."""
        self.ended = True
        if error is not None:
            for hold in self.holds:
                with suppress(PrivatestError):
                    hold.fail(error)


def spent_note(cost: Budget, *, recorded: bool = True) -> str:
    """Return a sentence on what a failure cost, and why that stays spent."""
    words = f"epsilon {cost.epsilon.normalize():f}"
    if cost.delta:
        words += f", delta {float(cost.delta):g}"
    spent = f"{words.capitalize()} was spent, and" if recorded else f"Count {words} as spent; it"
    return f"{spent} cannot be refunded: {_WHY}."


# --- budgets that are open ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Context:
    """Who pays here, and for what.

    ``payers`` is None where no budget was opened in this context, as in a new thread, and () where
    others keep count. ``charge`` is that of the public function that is running.
    """

    payers: tuple[Payer, ...] | None = None
    charge: Charge | None = None


_context: ContextVar[_Context] = ContextVar("privatest_budgets", default=_Context())  # noqa: B039
_everywhere: list[Payer] = []
_lock = Lock()


def open_payer(payer: Payer) -> None:
    """Let a budget pay from here on."""
    with _lock:
        _everywhere.append(payer)
    context = _context.get()
    _context.set(replace(context, payers=(*(context.payers or ()), payer)))


def close_payer(payer: Payer) -> None:
    """Let it pay no more."""
    with _lock:
        _everywhere.remove(payer)
    context = _context.get()
    payers = list(context.payers or ())
    if payer in payers:
        payers.remove(payer)
    _context.set(replace(context, payers=tuple(payers) or None))


@contextmanager
def uncharged() -> Iterator[None]:
    """Charge nothing in a block to open budgets: a curator keeps an account of its own."""
    token = _context.set(replace(_context.get(), payers=()))
    try:
        yield
    finally:
        _context.reset(token)


def _open_payers() -> tuple[Payer, ...]:
    """Return who pays here; a thread without a budget of its own is paid for by all others."""
    payers = _context.get().payers
    if payers is None:
        with _lock:
            payers = tuple(_everywhere)
    return tuple({payer.key: payer for payer in payers}.values())


def _running() -> Charge | None:
    """Return the charge of the public function that is running here, if any.

    A context may outlive a call: that of a task which a user's function started is a copy. What
    runs there after the end of the call is not paid for by it.
    """
    charge = _context.get().charge
    return None if charge is None or charge.ended else charge


def pay_for_data() -> None:
    """Pay for the function that is running, if any: data is about to be looked at."""
    charge = _running()
    if charge is not None:
        charge.pay()


def refuse_unpaid_noise() -> None:
    """Refuse secret noise where a budget is open and nobody pays for the function that runs."""
    charge = _running()
    if (charge is None or not charge.payers) and _open_payers():
        raise PrivacyError(
            "a budget is open, and this call is not charged to it: call the function by its public "
            "name, such as privatest.mmd_test."
        )


def charged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, paid for by the budgets that are open when it is called.

    Parameters
    ----------
    function : callable
        With ``epsilon``, ``delta`` and ``noise``, or ``plan`` instead of a budget.

    Notes
    -----
    **Privacy**: the cost is reserved before data is looked at, and stays spent. A function that
    is called by another one is paid for by that: its guarantee covers all that leaves it.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*data: Any, **options: Any) -> Any:
        context, outer = _context.get(), _running()
        inside = outer is not None and outer.payers
        if inside or not (payers := _open_payers()):
            return function(*data, **options)
        try:
            bound = signature.bind(*data, **options)
        except TypeError as error:  # in Python's own words, which name the function
            raise TypeError(f"{function.__name__}() {error}") from None
        bound.apply_defaults()
        public = {
            name: value
            for name, value in bound.arguments.items()
            if signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        }
        if getattr(public["noise"], "simulated", False) is True:
            payers = ()
        charge = Charge(payers, lambda: (_cost(public), _public_words(function.__name__, public)))
        token = _context.set(replace(context, charge=charge))
        try:
            with charge:
                result = function(*data, **options)
                charge.pay()
        except BaseException as error:
            if charge.holds:
                error.add_note(spent_note(_cost(public)))
            raise
        finally:
            _context.reset(token)
        try:
            charge.commit(_recordable(result))
        except Exception as error:  # it is paid for: it is not lost
            words = (
                f"The answer could not be recorded: {error} Its cost, {_cost(public)}, is spent."
            )
            warnings.warn(words, stacklevel=2)
        return result

    call.__module__ = "privatest"  # by which it is pickled
    return call


def _cost(arguments: Mapping[str, Any]) -> Budget:
    """Return what a call costs, by its parameters; a share's plan has a budget."""
    plan = arguments.get("plan")
    if plan is not None:
        budget: Budget = plan.budget
        return budget
    return Budget(arguments["epsilon"], arguments.get("delta") or 0)


def _public_words(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call in public words, for the history: data is positional, and not among them."""
    cost = _cost(arguments)
    head = {"function": name, "epsilon": f"{cost.epsilon:f}", "delta": f"{cost.delta:f}"}
    skipped = {*head, "noise", "rng"}
    plain = {key: value for key, value in arguments.items() if key not in skipped and _plain(value)}
    return head | {key: str(v) if isinstance(v, Decimal) else v for key, v in plain.items()}


def _plain(value: Any) -> bool:
    if type(value) in (list, tuple):
        return 0 < len(value) <= _MOST_WORDS and all(type(item) is str for item in value)
    if type(value) is str:
        return len(value) <= _LONGEST_WORD
    return type(value) in (bool, int, Decimal) or (type(value) is float and np.isfinite(value))


def _recordable(result: Any) -> Any:
    """Return what the ledger keeps of a result."""
    if hasattr(result, "__len__") and len(result) > _MOST_ROWS:
        return None
    return result.to_dict() if hasattr(result, "to_dict") else None
