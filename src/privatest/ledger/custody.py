"""What the custodian decides: data sets, budgets, who may ask, and when a period begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from privatest.accounting import Event
from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.ledger import history, special, transactions
from privatest.ledger.accounts import Composition, read_settings
from privatest.ledger.chain import parsed
from privatest.ledger.checks import day, is_budget, name_of, settings_of, told
from privatest.ledger.database import Database

__all__ = ["Custody"]


class Custody:
    """The part of a ledger that only its custodian uses."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_dataset(
        self,
        name: str,
        budget: Budget,
        *,
        composition: Composition = "basic",
        each: Event | None = None,
        partition: Iterable[str] = (),
        schema_digest: str = "",
        exist_ok: bool = False,
    ) -> None:
        """Add a data set with its total budget.

        Parameters
        ----------
        name : str
            Its name.
        budget : Budget
            What all releases together may cost.
        composition : {"basic", "tight", "equal"}
            What decides a grant: sums of epsilon and delta; zCDP, which allows more small
            requests and needs delta; or the number of requests, which all cost ``each``.
        each : Event, optional
            What every request costs, for "equal".
        partition : iterable of str
            Names of disjoint parts of the data, if it is public who is in which part.
        schema_digest : str
            Digest of the public schema; it never changes for a data set.
        exist_ok : bool
            Accept an existing data set with the same settings and budget.
        """
        settings = settings_of(composition, each, partition, schema_digest)
        name_of("dataset", name)
        is_budget(budget)
        if exist_ok and self._has(name):
            self._must_agree(name, budget, settings)
            return
        with self._database.writing() as connection:
            transactions.create_dataset(connection, name, budget, settings)

    def set_budget(
        self, dataset: str, budget: Budget, *, below_spent: bool = True, reason: str = ""
    ) -> None:
        """Change the total budget of a data set; history keeps the old one, and the reason.

        A budget below what is spent grants nothing more and refunds nothing; without
        ``below_spent`` it is refused.
        """
        is_budget(budget)
        words = told(reason)
        with self._database.writing() as connection:
            transactions.set_budget(connection, dataset, budget, below_spent, words)

    def set_analyst(
        self,
        dataset: str,
        analyst: str,
        budget: Budget,
        *,
        below_spent: bool = True,
        reason: str = "",
    ) -> None:
        """Give an analyst a budget of their own within a data set, or change it.

        An analyst who was revoked may ask again.
        """
        name_of("analyst", analyst)
        is_budget(budget)
        words = told(reason)
        with self._database.writing() as connection:
            transactions.set_analyst(connection, dataset, analyst, budget, below_spent, words)

    def revoke(self, dataset: str, analyst: str, *, reason: str = "") -> bool:
        """Grant an analyst nothing more; what was spent stays. False if that was so already."""
        with self._database.writing() as connection:
            return special.revoke(connection, dataset, analyst, told(reason))

    def renew(self, dataset: str, since: str, *, reason: str = "") -> bool:
        """Begin a new period with the whole budget; the chain keeps what was spent before.

        Parameters
        ----------
        dataset : str
            The data set.
        since : str
            The day on which the period begins, as in "2026-01-31"; it must not be in the future.
        reason : str
            The rule that declares periods, for the history.

        Returns
        -------
        bool
            False if the data set was entered, renewed or restored on that day or later: there is
            one budget for each period.

        Notes
        -----
        **Privacy**: the guarantee then holds for each period. After k periods it is that of k
        budgets: k times epsilon and delta.
        """
        day(since)
        with self._database.writing() as connection:
            return special.renew(connection, dataset, since, told(reason))

    def link(self, old: str, new: str) -> None:
        """Close a data set, and count what was spent there for the one that continues it."""
        with self._database.writing() as connection:
            special.link(connection, old, new)

    def _must_agree(self, name: str, budget: Budget, settings: Mapping[str, Any]) -> None:
        with self._database.reading() as connection:
            row = history.dataset_row(connection, name)
        before = parsed(read_settings, row.settings)
        if before["schema"] != settings["schema"]:
            raise ParameterError(
                f"The schema of data set {name!r} differs from the one its history was made "
                "with. Undo the change, or add the data under a new name with a new budget."
            )
        if before != settings:
            raise ParameterError(f"The composition or partition of {name!r} cannot be changed.")
        if Budget(row.epsilon, row.delta) != budget:
            raise ParameterError(
                f"The budget of {name!r} is {Budget(row.epsilon, row.delta)}. Change it with "
                "Ledger.set_budget or `privatest ledger set`."
            )

    def _has(self, name: str) -> bool:
        with self._database.reading() as connection:
            return name in history.dataset_names(connection)
