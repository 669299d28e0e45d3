"""The curator: the only owner of private data.

A request is checked, priced and rehearsed on made-up rows before its budget is reserved. What the
data can change is only the result of a private test, and that is recorded before it is returned.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from privatest.accounting import Event, event_of
from privatest.core.errors import (
    BudgetError,
    DataError,
    EngineError,
    LedgerError,
    ParameterError,
    PrivacyError,
    PrivatestError,
)
from privatest.core.noise import SecureNoise
from privatest.core.privacy import Budget
from privatest.core.spending import Charge, uncharged
from privatest.curator.admission import (
    admit,
    categories_of,
    limit_work,
    read_request,
    schema_digest,
)
from privatest.curator.answers import (
    Answer,
    Price,
    Rehearsal,
    RequestFailed,
    deployment_facts,
    log_failure,
)
from privatest.curator.config import CuratorConfig, DatasetConfig, period_start
from privatest.curator.contents import covered, fingerprinting, refuse_unreadable, stamp
from privatest.curator.registration import (
    Registration,
    changed_message,
    enter_dataset,
    load_registrations,
    made_up_rows,
    not_ready,
    open_ledger,
    register,
    rows_of,
    save_registration,
)
from privatest.curator.timing import IMMEDIATE, Schedule
from privatest.data.reading import Place
from privatest.data.sources import Source
from privatest.ledger import Ledger, request_digest
from privatest.ledger.spending import LedgerPayer
from privatest.ledger.state import Spent
from privatest.requests.rehearsal import quiet, rehearse_sizes
from privatest.requests.request import Prepared, Request
from privatest.requests.results import Result, result_from_dict

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_HELD = 1 << 28  # numbers of rows in private groups, 2 GiB


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
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


class Curator:
    """Answers requests about data that the asker may not see.

    Use ``Curator.open``.

    Notes
    -----
    **Privacy**: a request is checked, priced and rehearsed on made-up rows before its budget is
    reserved. What the data can change is only the result of a private test, and that is
    recorded before it is returned. Proof: docs/proofs/curator.md.
    """

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

    # --- for analysts -----------------------------------------------------------------------------

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
        schedule: Schedule = IMMEDIATE,
    ) -> Answer:
        """Answer a request, and charge it.

        Parameters
        ----------
        request : Request or mapping
            What is asked, such as ``{"dataset": "visits", "question": "two-sample", ...}``.
        analyst : str
            Who asks.
        schedule : Schedule
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
        schedule.on_admission(case.prepared, case.dataset, case.registration)
        place = case.dataset.place  # up to here no file was opened
        with fingerprinting(case.dataset, place, case.registration.key) as contents:
            self._rehearse(case, place)
            if contents() != case.registration.contents:
                raise ParameterError(changed_message(case.dataset.name))
        schedule.wait_to_reserve()
        payer = LedgerPayer(
            self._ledger, case.dataset.name, case.event, analyst, case.digest, schedule.number
        )
        charge = Charge([payer], lambda: (case.budget, case.prepared.asked))
        charge.pay()
        number = charge.holds[0].reservation.id
        try:
            with charge:
                try:
                    result = answer_from_rows(case.prepared, case.dataset, place, case.registration)
                    released = result.to_dict()
                finally:
                    schedule.wait_to_end()
                charge.commit(released)
                return _answer(case, result, number)
        except Exception as error:
            self._log(case, number, error, str(case.budget))
        # outside of the except block: there the failure itself would be this one's context
        raise RequestFailed(number, spent=True)

    def _recorded(self, case: AdmittedRequest) -> Answer | None:
        """Return what was released before. It is about the contents that are registered."""
        recorded = self._ledger.recall(case.dataset.name, case.digest)
        if recorded is None:
            return None
        found = result_from_dict(recorded, case.budget)
        if found is None:
            raise LedgerError("The recorded answer cannot be read.")
        return _answer(case, found, None)

    def _admitted(self, request: Request | Mapping[str, Any], analyst: str) -> AdmittedRequest:
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
        return AdmittedRequest(prepared, dataset, who.name, registration, event, digest)

    def _rehearse(self, case: AdmittedRequest, place: Place) -> Result:
        """Run the request on made-up rows, to refuse it before anything is spent."""
        try:
            check_sizes(case.prepared, place, rows_of(case.registration, case.prepared.filters))
            schema = case.dataset.schema.select(case.prepared.reads)
            return run_privately(case.prepared, made_up_rows(case.registration, schema))
        except PrivatestError:
            raise  # about the request and public sizes only: the rows were made up
        except Exception as error:
            number = uuid.uuid4().hex
            self._log(case, number, error, "nothing")
        raise RequestFailed(number, spent=False)

    def _too_dear(self, case: AdmittedRequest) -> BudgetError:
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

    def _affords(self, case: AdmittedRequest) -> bool:
        return self._ledger.affords(
            case.dataset.name, case.event, analyst=case.analyst, budget=case.budget
        )

    def _log(self, case: AdmittedRequest, number: str, error: Exception, spent: str) -> None:
        with suppress(OSError):  # a full disk must not turn into another message
            facts = {"dataset": case.dataset.name, "analyst": case.analyst, "spent": spent}
            log_failure(self.config.log, number, error, **facts)

    # --- for the custodian, who may see errors of the data ----------------------------------------

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
        enter_dataset(self._ledger, dataset, self.config.analysts.values())
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


def check_sizes(prepared: Prepared, place: Place, rows: int) -> None:
    """Refuse what public sizes say: workers who cannot be reached, more rows than a test holds."""
    from privatest.data.engines import check_workers  # noqa: PLC0415

    if place.workers is not None:
        try:
            check_workers(place.workers)
        except EngineError:  # its words tell an analyst where the workers are
            raise EngineError("the curator's workers do not answer; tell the custodian.") from None
    if place.passes(prepared.reads):
        groups = 1 if prepared.grouping is None else len(prepared.grouping.labels)
        rehearse_sizes(prepared, [rows // groups] * groups)


def answer_from_rows(
    prepared: Prepared, dataset: DatasetConfig, place: Place, registered: Registration
) -> Result:
    """Read the private rows and answer. From here on nothing but the result may leave."""
    categories = dataset.schema.categorical_names
    table = place.read(prepared.reads, categories, registered=True)
    if len(table) != registered.rows or stamp(dataset) != registered.stamp:
        raise DataError("the file changed since it was validated.")
    private = prepared.grouping is not None and prepared.grouping.membership == "private"
    if isinstance(table, Source) and private and len(table) * len(table.names) <= _MOST_HELD:
        # how far a source is read again would tell where a group's rows are; so would pieces
        table = table.load().combine_chunks()
    return run_privately(prepared, table)


def run_privately(prepared: Prepared, table: pa.Table | Source) -> Result:
    """Answer without a warning: it may quote a value.

    The table is private, or it is made up: both take the same way.
    """
    with quiet(), uncharged():
        result = prepared.run(table, noise=SecureNoise(constant_time=True))
    spent, price = result.spent, prepared.request.budget
    if result.simulated or spent.epsilon > price.epsilon or spent.delta > price.delta:
        raise PrivacyError("the answer cost more than its price.")
    return result


def _event(prepared: Prepared, dataset: DatasetConfig) -> Event:
    """Return what will happen to the data, as far as the method promises it."""
    gaussian = prepared.request.gaussian and dataset.composition == "tight"
    part = None  # of the declared partition; None is all of the data
    chosen = prepared.filters.get(dataset.partition or "")
    if chosen is not None and dataset.partition is not None and len(chosen.codes) == 1:
        (code,) = chosen.codes
        part = categories_of(dataset.schema, dataset.partition)[code]
    return event_of(prepared.request.budget, gaussian=gaussian, part=part)


def _answer(case: AdmittedRequest, result: Result, number: str | None) -> Answer:
    words, label = case.prepared.words, case.prepared.label
    return Answer(case.dataset.name, words, label, result, number, recorded=number is None)
