"""What a custodian does with a curator: open it, register data, revoke, renew, look at facts."""

from __future__ import annotations

import os
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from privatest.core.errors import ParameterError
from privatest.curator.budgets import enter, not_ready, open_ledger
from privatest.curator.config import CuratorConfig, DatasetConfig
from privatest.curator.facts import deployment_facts
from privatest.curator.overlaps import covered
from privatest.curator.periods import period_start
from privatest.curator.registration import (
    Registration,
    load_registrations,
    register,
    save_registration,
)
from privatest.ledger import Ledger
from privatest.ledger.state import Spent

__all__ = ["Custody"]


class Custody:
    """The custodian's half of a curator; whoever holds it may see the data's own errors."""

    __slots__ = ("_ledger", "_registrations", "config")

    def __init__(self, config: CuratorConfig, ledger: Ledger) -> None:
        self.config = config
        self._ledger = ledger
        self._registrations = load_registrations(config.state)

    @classmethod
    def open(cls, config: str | os.PathLike[str], *, create: bool = False) -> Self:
        """Read ``curator.toml`` and open its ledger. No data is read.

        Parameters
        ----------
        config : str or path
            The file.
        create : bool
            Make the ledger if there is none. It is refused where data sets were registered
            before: their history is missing then, and with it what was spent.
        """
        settings = CuratorConfig.load(config)
        with ExitStack() as cleanup:
            ledger = cleanup.enter_context(open_ledger(settings, create=create))
            opened = cls(settings, ledger)
            cleanup.pop_all()
        return opened

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def __enter__(self) -> Self:
        """Use the curator for a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it at the end of the block."""
        self.close()

    @property
    def ledger(self) -> Ledger:
        """Budgets, and the record of all requests: for those who may see it."""
        return self._ledger

    def registration(self, name: str) -> Registration | None:
        """Return the public facts of a data set as it was registered last, if it was."""
        return self._registrations.get(name)

    def facts(self, name: str) -> dict[str, Any]:
        """Return what the public may be told of how a data set is protected."""
        dataset = self._dataset(name)
        reason = self.not_ready(name)
        if reason is not None:
            raise ParameterError(reason)
        return deployment_facts(dataset, self._ledger.totals(name))

    def register(self, name: str) -> Registration:
        """Validate a data set against its schema, and enter it and its analysts in the ledger.

        This is the custodian's moment to see what is wrong with the data: the DataError is for
        them alone. A data set whose schema differs from its history's is refused, and so is one
        with the same contents as another. A budget that was changed in the file is changed in
        the ledger, which keeps the old one too.
        """
        dataset = self._dataset(name)
        known = load_registrations(self.config.state)
        found = register(dataset, next((k.key for k in known.values()), uuid.uuid4().hex))
        found = found.after(known.get(name), charged=self._is_charged(name))
        self._registrations = known
        twins = self.twins(name, found)
        shared = [twin for twin in twins if twin in self.config.datasets] or self._sharing(dataset)
        if shared:
            raise ParameterError(
                f"{name!r} has the same contents as {shared[0]!r} has, or had before: two budgets "
                "for the same people add up. Leave one of them out of the file."
            )
        enter(self._ledger, dataset, self.config.analysts.values())
        for twin in twins:
            self._link(twin, name)
        save_registration(self.config.state, name, found)
        self._registrations[name] = found
        return found

    def twins(self, name: str, registration: Registration) -> list[str]:
        """Return under which other names the same contents, or source, were ever registered."""
        return [
            other
            for other, known in self._registrations.items()
            if other != name
            and (
                registration.contents in (known.contents, *known.earlier)
                or (known.source == registration.source != "" and other not in self.config.datasets)
            )
        ]

    def _is_charged(self, name: str) -> bool:
        known = name in self._ledger.datasets()
        return known and self._ledger.totals(name).account.spent != Spent()

    def _sharing(self, dataset: DatasetConfig) -> list[str]:
        """Return other data sets that have a file of this one, at whatever address."""
        if not isinstance(dataset.source, str) or dataset.place.is_database:
            return []  # found when curator.toml was read
        has = covered(dataset, remote=True)
        others = (each for each in self.config.datasets.values() if each.name != dataset.name)
        return [each.name for each in others if has & covered(each, remote=True)]

    def _link(self, old: str, name: str) -> None:
        """Count what was spent under an old name; it is closed."""
        if old in self._ledger.datasets() and not self._ledger.totals(old).account.closed:
            self._ledger.link(old, name)

    def revoke(self, analyst: str, *, undo: bool = False, reason: str = "") -> list[str]:
        """Let an analyst ask nothing more, of any data set; return those where that changed.

        What was spent stays spent, and what was answered stays on record. With ``undo`` they
        may ask again, within the budget that they had.
        """
        accounts = {
            name: self._ledger.totals(name).analysts.get(analyst)
            for name in self._ledger.datasets()
        }
        if all(account is None for account in accounts.values()):
            raise ParameterError(f"the ledger has no analyst {analyst!r}.")
        changed = []
        for name, account in accounts.items():
            if account is None or account.closed != undo:
                continue
            if undo:
                self._ledger.set_analyst(name, analyst, account.budget, reason=reason)
            else:
                self._ledger.revoke(name, analyst, reason=reason)
            changed.append(name)
        return changed

    def is_revoked(self, dataset: str, analyst: str) -> bool:
        """Return whether an analyst may neither ask a data set nor see what it answered them."""
        who = self.config.analysts.get(analyst)
        if who is not None and who.revoked:
            return True
        if dataset not in self._ledger.datasets():
            return False
        account = self._ledger.totals(dataset).analysts.get(analyst)
        return account is not None and account.closed

    def renew(self, name: str) -> bool:
        """Give a data set its budget anew, if its declared period has begun since the last time.

        Notes
        -----
        **Privacy**: the budget then holds for each period; after k periods people are protected by
        k budgets together, k times epsilon and delta.
        """
        rule = self._dataset(name).renew
        if rule is None:
            raise ParameterError(f"data set {name!r} declares no period: add renew to the file.")
        since = period_start(rule, datetime.now(UTC).date())
        return self._ledger.renew(name, since.isoformat(), reason=f"renew = {rule}")

    def not_ready(self, name: str) -> str | None:
        """Return why a data set cannot be asked about, or None if it can."""
        dataset = self._dataset(name)
        known = self._registrations.get(name)
        if known is None or not known.is_current(dataset):  # registered by another process?
            self._registrations = load_registrations(self.config.state)
            known = self._registrations.get(name)
        return not_ready(self._ledger, dataset, self.config.analysts.values(), known)

    def _dataset(self, name: str) -> DatasetConfig:
        if name not in self.config.datasets:
            raise ParameterError(f"dataset must be one that the curator has; got {name!r}.")
        return self.config.datasets[name]
