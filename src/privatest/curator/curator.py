"""The curator: the only owner of private data."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from privatest.accounting import Event, event_of
from privatest.core.errors import BudgetError, LedgerError, ParameterError, PrivatestError
from privatest.core.privacy import Budget
from privatest.core.spending import Charge
from privatest.curator.admission import admit, categories_of, read_request, schema_digest
from privatest.curator.answering import look, quietly, ready
from privatest.curator.answers import Answer, Price, Rehearsal, RequestFailed, log_failure
from privatest.curator.budgets import changed
from privatest.curator.config import DatasetConfig
from privatest.curator.contents import fingerprinting, refuse_unreadable
from privatest.curator.custody import Custody
from privatest.curator.pace import AT_ONCE, Pace
from privatest.curator.registration import (
    Registration,
    made_up_rows,
    rows_of,
)
from privatest.curator.work import limit_work
from privatest.data.reading import Place
from privatest.ledger import request_digest
from privatest.ledger.spending import LedgerPayer
from privatest.requests.request import Prepared, Request
from privatest.requests.results import Result, result_from_dict

__all__ = ["Curator"]


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A request that its analyst may ask now.

    **Invariant**: the policy allows it, the data set is registered as it is, and what it will be
    charged, and recorded as, is known. All of it is public.
    """

    prepared: Prepared
    dataset: DatasetConfig
    analyst: str
    registration: Registration
    event: Event
    digest: str

    @property
    def budget(self) -> Budget:
        """What the request costs under plain addition."""
        return self.prepared.request.budget


class Curator(Custody):
    """Answers requests about data that the asker may not see.

    Use ``Curator.open``. What a custodian does with it is in :mod:`privatest.curator.custody`.

    Notes
    -----
    **Privacy**: a request is checked, priced and rehearsed on made-up rows before its budget is
    reserved. What the data can change is only the result of a private test, and that is
    recorded before it is returned. Proof: docs/proofs/curator.md.
    """

    __slots__ = ()

    def rehearse(self, request: Request | Mapping[str, Any], *, analyst: str) -> Rehearsal:
        """Answer a request from made-up rows: uniform over the schema, with the public sizes.

        Parameters
        ----------
        request : Request or mapping
            What would be asked; the budget need not have that much left.
        analyst : str
            Who would ask.

        Notes
        -----
        **Privacy**: no private row is read, nothing is charged, nothing is recorded. The answer
        says what a result looks like, and nothing about anybody.
        """
        case = self._admitted(request, analyst)
        result = self._rehearse(case, case.dataset.place)
        return Rehearsal(case.dataset.name, case.prepared.words, case.prepared.label, result)

    def price(
        self, request: Request | Mapping[str, Any], *, analyst: str, afford: bool = False
    ) -> Price:
        """Return what a request would cost; data is not touched, nothing is spent.

        With ``afford`` a request that the budget is too small for is a BudgetError, as in
        :meth:`run`.
        """
        case = self._admitted(request, analyst)
        name = case.dataset.name
        price = Price(
            dataset=name,
            budget=case.budget,
            part=case.event.part,
            affordable=self._affords(case),
            recorded=self._ledger.recall(name, case.digest) is not None,
        )
        if afford and not price.affordable and not price.recorded:
            raise self._too_dear(case)
        return price

    def prepared(self, request: Request | Mapping[str, Any], *, analyst: str) -> Prepared:
        """Return a request as it would be answered, checked against all that is public."""
        return self._admitted(request, analyst).prepared

    def run(
        self,
        request: Request | Mapping[str, Any],
        *,
        analyst: str,
        pace: Pace = AT_ONCE,
    ) -> Answer:
        """Answer a request, and charge it.

        Parameters
        ----------
        request : Request or mapping
            What is asked, such as ``{"dataset": "visits", "question": "two-sample", ...}``.
        analyst : str
            Who asks.
        pace : Pace
            When to go on; a worker waits for public times, since others may hold a watch.

        Raises
        ------
        ParameterError, PrivacyError, DataError, BudgetError
            If it is refused; nothing was spent, and no row was looked at.
        RequestFailed
            If it failed; the message says whether its budget is spent.

        Notes
        -----
        **Sensitivity**: that of the test, whose noise is calibrated by it.
        **Privacy**: the request's own (epsilon, delta), reserved before rows are looked at. A
        recorded answer is released again at no cost. Noise is always secret: there is no way
        to pass another.
        """
        case = self._admitted(request, analyst)
        recorded = self._recorded(case)
        if recorded is not None:
            return recorded
        if not self._affords(case):
            raise self._too_dear(case)
        refuse_unreadable(case.dataset)
        pace.admitted(case.prepared, case.dataset, case.registration)
        place = case.dataset.place  # up to here no file was opened
        with fingerprinting(case.dataset, place, case.registration.key) as contents:
            self._rehearse(case, place)
            if contents() != case.registration.contents:
                raise ParameterError(changed(case.dataset.name))
        pace.reserving()
        payer = LedgerPayer(
            self._ledger, case.dataset.name, case.event, analyst, case.digest, pace.number
        )
        charge = Charge([payer], lambda: (case.budget, case.prepared.asked))
        charge.pay()
        number = charge.holds[0].reservation.id
        try:
            with charge:
                try:
                    result = look(case.prepared, case.dataset, place, case.registration)
                    released = result.to_dict()
                finally:
                    pace.ending()
                charge.commit(released)
                return _answer(case, result, number)
        except Exception as error:
            self._log(case, number, error, str(case.budget))
        # outside of the except block: there the failure itself would be this one's context
        raise RequestFailed(number, spent=True)

    def _recorded(self, case: _Admitted) -> Answer | None:
        """Return what was released before. It is about the contents that are registered."""
        recorded = self._ledger.recall(case.dataset.name, case.digest)
        if recorded is None:
            return None
        found = result_from_dict(recorded, case.budget)
        if found is None:
            raise LedgerError("The recorded answer cannot be read.")
        return _answer(case, found, None)

    def _admitted(self, request: Request | Mapping[str, Any], analyst: str) -> _Admitted:
        """Check a request against all that is public."""
        who = self.config.analysts.get(analyst)
        if who is None:
            raise ParameterError("analyst must be one that the curator knows.")
        asked = read_request(request)
        if asked.dataset not in who.datasets:  # also for a data set that does not exist
            raise ParameterError(f"analyst {who.name!r} has no data set {asked.dataset!r}.")
        dataset = self._dataset(asked.dataset)
        if self.is_revoked(dataset.name, who.name):
            raise ParameterError(f"analyst {who.name!r} may not ask any more.")
        prepared = admit(asked, dataset)
        reason = self.not_ready(dataset.name)
        if reason is not None:
            raise ParameterError(reason)
        registration = self._registrations[dataset.name]
        limit_work(prepared, dataset, rows_of(registration, prepared.filters))
        # whose: an analyst's budget bounds what that analyst has seen. which: other data, other
        # answer; without its key the fingerprint says nothing about the rows.
        words = {
            **asked.to_dict(),
            "analyst": who.name,
            "schema": schema_digest(dataset.schema),
            "contents": registration.contents,
        }
        event, digest = _event(prepared, dataset), request_digest(words)
        return _Admitted(prepared, dataset, who.name, registration, event, digest)

    def _rehearse(self, case: _Admitted, place: Place) -> Result:
        """Run the request on made-up rows, to refuse it before anything is spent."""
        try:
            ready(case.prepared, place, rows_of(case.registration, case.prepared.filters))
            schema = case.dataset.schema.select(case.prepared.reads)
            return quietly(case.prepared, made_up_rows(case.registration, schema))
        except PrivatestError:
            raise  # about the request and public sizes only: the rows were made up
        except Exception as error:
            number = uuid.uuid4().hex
            self._log(case, number, error, "nothing")
        raise RequestFailed(number, spent=False)

    def _too_dear(self, case: _Admitted) -> BudgetError:
        """Return the refusal, with what is left for this analyst: sums of earlier prices."""
        totals = self._ledger.totals(case.dataset.name)
        accounts = (totals.account, totals.analysts[case.analyst])
        lefts = [account.sums.left(account.limits, case.event.part) for account in accounts]
        asked = {"epsilon": case.budget.epsilon, "delta": case.budget.delta}
        left = {name: min(own[name] for own in lefts) for name in lefts[0] if name in lefts[1]}
        missing = BudgetError(asked=asked, left=left).missing
        words = "; ".join(
            f"{name}: {float(asked[name]):.9g} asked, {float(left[name]):.9g} left"
            for name in missing
        )
        return BudgetError(
            f"The request costs more than what is left for analyst {case.analyst!r} on data "
            f"set {case.dataset.name!r}{words and f' ({words})'}. Nothing was spent.",
            asked=asked,
            left=left,
        )

    def _affords(self, case: _Admitted) -> bool:
        return self._ledger.affords(
            case.dataset.name, case.event, analyst=case.analyst, budget=case.budget
        )

    def _log(self, case: _Admitted, number: str, error: Exception, spent: str) -> None:
        with suppress(OSError):  # a full disk must not turn into another message
            facts = {"dataset": case.dataset.name, "analyst": case.analyst, "spent": spent}
            log_failure(self.config.log, number, error, **facts)


def _event(prepared: Prepared, dataset: DatasetConfig) -> Event:
    """Return what will happen to the data, as far as the method promises it."""
    gaussian = prepared.request.gaussian and dataset.composition == "tight"
    return event_of(prepared.request.budget, gaussian=gaussian, part=_part(prepared, dataset))


def _part(prepared: Prepared, dataset: DatasetConfig) -> str | None:
    """Return the part of the declared partition that a request is about; None is all."""
    chosen = prepared.filters.get(dataset.partition or "")
    if chosen is None or dataset.partition is None or len(chosen.codes) != 1:
        return None
    (code,) = chosen.codes
    return categories_of(dataset.schema, dataset.partition)[code]


def _answer(case: _Admitted, result: Result, number: str | None) -> Answer:
    words, label = case.prepared.words, case.prepared.label
    return Answer(case.dataset.name, words, label, result, number, recorded=number is None)
