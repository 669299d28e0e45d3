"""Which budget pays for a call of the library: before it looks at data, or not at all.

Public functions are wrapped where they are exported (:func:`charged`). Two places that all of
them pass make them pay: where data comes in, and where secret noise is asked for. Whoever gets
noise while a budget is open, and was not wrapped, is refused: no function can be forgotten.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from functools import wraps
from threading import Lock
from typing import Any, Protocol

import numpy as np

from privatest.core.errors import PrivacyError
from privatest.core.privacy import Budget

__all__ = [
    "Payer",
    "Ticket",
    "charged",
    "charged_elsewhere",
    "close_payer",
    "open_payer",
    "pay_for_data",
    "pay_for_noise",
]

_LONGEST_WORD, _MOST_WORDS = 200, 20


class Ticket(Protocol):
    """What was reserved: it is spent, whatever comes."""

    def commit(self, result: Any) -> None:
        """Record what was released."""

    def fail(self, error: BaseException) -> None:
        """Record that nothing was."""


class Payer(Protocol):
    """An open budget."""

    @property
    def key(self) -> tuple[str, str]:
        """Which account it is: one that is open twice pays once."""

    def affords(self, cost: Budget) -> bool:
        """Return whether a reservation would be granted; PrivacyError if it cannot pay here."""

    def reserve(self, cost: Budget, asked: Mapping[str, Any]) -> Ticket:
        """Spend, or raise BudgetError."""


# None: nobody said anything in this context, as in a new thread; (): others keep count
_own: ContextVar[tuple[Payer, ...] | None] = ContextVar("privatest_budgets", default=None)
_call: ContextVar[_Call | None] = ContextVar("privatest_call", default=None)
_everywhere: list[Payer] = []
_lock = Lock()


def open_payer(payer: Payer) -> None:
    """Let a budget pay from here on."""
    with _lock:
        _everywhere.append(payer)
    _own.set((*(_own.get() or ()), payer))


def close_payer(payer: Payer) -> None:
    """Let it pay no more."""
    with _lock:
        _everywhere.remove(payer)
    own = list(_own.get() or ())
    if payer in own:
        own.remove(payer)
    _own.set(tuple(own) or None)


@contextmanager
def charged_elsewhere() -> Iterator[None]:
    """Let nothing be charged in a block: a curator keeps an account of its own."""
    token = _own.set(())
    try:
        yield
    finally:
        _own.reset(token)


def _payers() -> tuple[Payer, ...]:
    """Return who pays here; a thread without a budget of its own is paid for by all others."""
    own = _own.get()
    if own is None:
        with _lock:
            own = tuple(_everywhere)
    return tuple({payer.key: payer for payer in own}.values())


class _Call:
    """A public function that is running, and what is paid for it."""

    __slots__ = ("_arguments", "_lock", "_name", "_paid", "_payers", "tickets")

    def __init__(self, name: str, arguments: Mapping[str, Any], payers: tuple[Payer, ...]) -> None:
        self._name, self._arguments, self._payers = name, arguments, payers
        self._lock, self._paid = Lock(), False
        self.tickets: list[Ticket] = []

    @property
    def covers(self) -> bool:
        """Whether somebody pays for it; nobody does for simulated noise, which covers nothing."""
        return bool(self._payers)

    @property
    def cost(self) -> Budget:
        """What it costs, by its parameters; a share's plan has a budget too."""
        plan = self._arguments.get("plan")
        if plan is not None:
            agreed: Budget = plan.budget
            return agreed
        return Budget(self._arguments["epsilon"], self._arguments.get("delta") or 0)

    def pay(self) -> None:
        """Pay once; nothing is spent if one of several budgets cannot."""
        with self._lock:
            if self._paid or not self._payers:
                return
            cost = self.cost
            asked = _words(self._name, cost, self._arguments)
            for payer in sorted(self._payers, key=lambda payer: payer.affords(cost)):
                self.tickets.append(payer.reserve(cost, asked))
            self._paid = True


def pay_for_data() -> None:
    """Pay for the call that is running here, if there is one: data is about to be looked at."""
    call = _call.get()
    if call is not None:
        call.pay()


def pay_for_noise() -> None:
    """Pay for the call that is running here, or refuse secret noise that nobody pays for."""
    call = _call.get()
    if call is not None and call.covers:
        call.pay()
    elif _payers():
        raise PrivacyError(
            "a budget is open, and this call is not charged to it: call the function by its public "
            "name, such as privatest.mmd_test."
        )


def charged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, paid for by the budgets that are open when it is called.

    Parameters
    ----------
    function : callable
        With ``epsilon``, ``delta`` and ``noise``, or ``plan`` in the place of a budget.

    Notes
    -----
    **Privacy**: the cost is reserved before data is looked at, and stays spent. A function that
    is called by another one is paid for by that: its guarantee covers all that leaves it.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*data: Any, **options: Any) -> Any:
        outer = _call.get()
        if (outer is not None and outer.covers) or not (payers := _payers()):
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
        simulated = getattr(public["noise"], "simulated", False) is True
        running = _Call(function.__name__, public, () if simulated else payers)
        token = _call.set(running)
        try:
            result = function(*data, **options)
            running.pay()
        except BaseException as error:
            for ticket in running.tickets:
                ticket.fail(error)
            raise
        finally:
            _call.reset(token)
        for ticket in running.tickets:
            ticket.commit(result)
        return result

    call.__module__ = "privatest"  # by which it is pickled
    return call


def _words(name: str, cost: Budget, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call in public words, for the history: data is positional, and not among them."""
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
