"""Who pays: an account of a ledger, and ``with privatest.budget("visits", epsilon=3): ...``."""

from __future__ import annotations

import html
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from privatest.accounting import Event, event_of
from privatest.core.documents import default_ledger
from privatest.core.errors import ParameterError, PrivacyError
from privatest.core.privacy import Amount, Budget
from privatest.core.spending import close_payer, open_payer
from privatest.core.validation import of_type
from privatest.ledger.state import Account, Reservation
from privatest.ledger.store import Ledger

_LEFT = {"rho": "of rho", "rho_delta": "of delta", "events": "requests"}


@dataclass(frozen=True, slots=True)
class LedgerHold:
    """A reservation in a ledger."""

    ledger: Ledger
    reservation: Reservation

    def commit(self, released: Any) -> None:
        """Record what was released."""
        self.ledger.commit(self.reservation, released=released)

    def fail(self, error: BaseException) -> None:
        """Record that nothing was released, and the type of the error."""
        self.ledger.fail(self.reservation, reason=type(error).__name__)


@dataclass(frozen=True, slots=True)
class LedgerPayer:
    """The account of a data set, and of an analyst.

    Parameters
    ----------
    ledger, dataset
        The account.
    event : Event, optional
        What will happen, if more is known of it than its cost.
    analyst, request, number : str, optional
        As in ``Ledger.reserve``.
    """

    ledger: Ledger
    dataset: str
    event: Event | None = None
    analyst: str | None = None
    request: str | None = None
    number: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Which account it is."""
        return self.dataset, self.analyst or ""

    def affords(self, cost: Budget) -> bool:
        """Return whether a reservation would be granted now."""
        event = self.event or event_of(cost)
        return self.ledger.affords(self.dataset, event, analyst=self.analyst, budget=cost)

    def reserve(self, cost: Budget, asked: Mapping[str, Any]) -> LedgerHold:
        """Spend, before data is looked at."""
        reservation = self.ledger.reserve(
            self.dataset,
            self.event or event_of(cost),
            analyst=self.analyst,
            request=self.request,
            budget=cost,
            asked=asked,
            number=self.number,
        )
        return LedgerHold(self.ledger, reservation)


def budget(
    dataset: str,
    *,
    epsilon: Amount | None = None,
    delta: Amount | None = None,
    ledger: str | os.PathLike[str] | None = None,
) -> BudgetBlock:
    """Charge the library's calls in a ``with`` block to the budget of a data set.

    Parameters
    ----------
    dataset : str
        The name of the data in the ledger: the same people, the same name.
    epsilon, delta : float, int, str or Decimal, optional
        What all releases together may cost, ever. They enter a data set that the ledger does
        not have yet; for one that it has they must be the same, and may be left out.
    ledger : str or path, optional
        A file, or ``postgresql://user@host/database``. By default ``PRIVATEST_LEDGER``, else
        one in the user's state folder: the one that commands use.

    Returns
    -------
    BudgetBlock
        With ``left`` and ``spent``, in the block and after it.

    Notes
    -----
    **Privacy** Epsilons and deltas add up (basic composition, which holds for calls chosen after
    reading earlier answers): all releases of all blocks of a data set together are
    (epsilon, delta)-private, if its rows are looked at in such blocks only. A call is charged
    before it looks at data, and what is charged stays spent, whatever happens. Simulated noise is
    not charged. See docs/how-to/keep-a-budget.md.

    Examples
    --------
    >>> import tempfile, numpy as np, privatest as pt
    >>> folder = tempfile.TemporaryDirectory()
    >>> visits = np.random.default_rng(0).uniform(0, 80, size=500)
    >>> with pt.budget("visits", epsilon=3, ledger=f"{folder.name}/ledger.db") as left:
    ...     found = pt.private_median(visits, bounds=(0, 80), epsilon=1)
    ...     print(left)
    Budget of visits: epsilon 1 of 3 spent, 2 left.
    >>> folder.cleanup()
    """
    return BudgetBlock(dataset, epsilon, delta, default_ledger() if ledger is None else ledger)


class BudgetBlock:
    """The budget of a data set, which pays for calls of the library in a ``with`` block.

    Use :func:`budget`. It can be entered again, and inside of another one: then both pay.
    """

    __slots__ = ("_depth", "_ledger", "_lock", "_place", "_process", "dataset")

    def __init__(
        self,
        dataset: str,
        epsilon: Amount | None,
        delta: Amount | None,
        ledger: str | os.PathLike[str],
    ) -> None:
        if not of_type(dataset, str):  # not quoted: it may be the data itself
            raise ParameterError("dataset must be the name of a data set in the ledger.")
        if not of_type(ledger, str, os.PathLike):
            raise ParameterError("ledger must be a file or an address.")
        self.dataset = dataset
        place = os.fspath(ledger)
        self._place = place if "://" in place else str(Path(place).absolute())
        self._ledger: Ledger | None = None
        self._depth, self._process, self._lock = 0, os.getpid(), Lock()
        if epsilon is None and delta is not None:
            raise ParameterError("epsilon must be given with delta.")
        self._enter(None if epsilon is None else Budget(epsilon, delta or 0), delta is not None)

    def _enter(self, wanted: Budget | None, with_delta: bool) -> None:
        """Give the data set its budget, or see that it has this one."""
        here = "://" in self._place or Path(self._place).exists()
        if wanted is None and not here:
            raise ParameterError("epsilon must be given: there is no ledger yet.")
        if not here:
            Path(self._place).parent.mkdir(parents=True, exist_ok=True)
        with Ledger.open(self._place, create=wanted is not None) as ledger:
            if self.dataset not in ledger.datasets():
                if wanted is None:
                    raise ParameterError(
                        f"epsilon must be given: data set {self.dataset!r} is not in the ledger."
                    )
                ledger.create_dataset(self.dataset, wanted, exist_ok=True)
                return
            known = ledger.totals(self.dataset).account.budget
        if wanted is None:
            return
        if known.epsilon != wanted.epsilon or (with_delta and known.delta != wanted.delta):
            raise ParameterError(
                f"the budget of {self.dataset!r} is {known}, and was promised to people. Leave "
                "epsilon and delta out, or change it with `privatest ledger set`."
            )

    @property
    def key(self) -> tuple[str, str]:
        """Which account it is."""
        return self._place, self.dataset

    @property
    def account(self) -> Account:
        """The whole budget, its limits, and what was spent."""
        with self._opened() as ledger:
            return ledger.totals(self.dataset).account

    @property
    def spent(self) -> dict[str, Decimal]:
        """Sums of epsilons and deltas."""
        spent = self.account.spent
        return {"epsilon": spent.epsilon, "delta": spent.delta}

    @property
    def left(self) -> dict[str, Decimal | int]:
        """What is left, by the names of the sums that decide: epsilon and delta as a rule."""
        return self.account.left

    def __enter__(self) -> Self:
        """Let it pay."""
        with self._lock:
            if self._depth == 0:
                self._ledger, self._process = Ledger.open(self._place), os.getpid()
            self._depth += 1
        open_payer(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let it pay no more."""
        close_payer(self)
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._ledger is not None:
                self._ledger.close()
                self._ledger = None

    def __str__(self) -> str:
        """Say what is spent and what is left."""
        account = self.account
        total, spent = account.budget, account.spent
        words = f"epsilon {_text(spent.epsilon)} of {_text(total.epsilon)} spent"
        if total.delta:
            words += f", delta {_text(spent.delta)} of {_text(total.delta)}"
        named = [f"{_text(value)} {_LEFT.get(name, name)}" for name, value in account.left.items()]
        if not total.delta and "epsilon" in account.left:
            named = [_text(account.left["epsilon"])]
        return f"Budget of {self.dataset}: {words}, {' and '.join(named)} left."

    def __repr__(self) -> str:
        """Show the same: notebooks print it."""
        return str(self)

    def _repr_html_(self) -> str:
        share = float(self.account.used)
        return f'<p>{html.escape(str(self))} <progress value="{share:.4f}"></progress></p>'

    def affords(self, cost: Budget) -> bool:
        """Return whether a call of this cost would be granted now."""
        return LedgerPayer(self._open_ledger(), self.dataset).affords(cost)

    def reserve(self, cost: Budget, asked: Mapping[str, Any]) -> LedgerHold:
        """Spend, before data is looked at."""
        return LedgerPayer(self._open_ledger(), self.dataset).reserve(cost, asked)

    def _open_ledger(self) -> Ledger:
        """Return the open ledger; a connection must not be shared with another process."""
        if self._ledger is None or self._process != os.getpid():
            raise PrivacyError(
                f"the budget of {self.dataset!r} was opened in a block that has ended, or in "
                "another process: open it here, with privatest.budget."
            )
        return self._ledger

    @contextmanager
    def _opened(self) -> Iterator[Ledger]:
        if self._ledger is not None and self._process == os.getpid():
            yield self._ledger
            return
        with Ledger.open(self._place) as ledger:
            yield ledger


def _text(value: Decimal | int) -> str:
    return f"{float(value):g}"
