"""What curator.toml says, and what the ledger says: brought together by the custodian only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from privatest.accounting import event_of
from privatest.core.errors import LedgerError, LedgerMissing, ParameterError
from privatest.core.privacy import Budget
from privatest.curator.admission import categories_of, schema_digest
from privatest.curator.registration import Registration, load_registrations
from privatest.ledger import Account, Ledger

if TYPE_CHECKING:
    from privatest.curator.config import AnalystConfig, CuratorConfig, DatasetConfig

__all__ = ["changed", "enter", "not_ready", "open_ledger"]


def open_ledger(config: CuratorConfig, *, create: bool) -> Ledger:
    """Open the ledger; make one only where nothing was ever registered."""
    known = load_registrations(config.state)
    try:
        return Ledger.open(config.ledger, create=create and not known)
    except LedgerMissing:
        if known:
            raise LedgerError(
                "The ledger is gone, though data sets were registered. Put it back: a new one "
                "would not know what was spent."
            ) from None
        raise


def enter(ledger: Ledger, dataset: DatasetConfig, analysts: Iterable[AnalystConfig]) -> None:
    """Enter a data set and its analysts, or change their budgets to what the file says."""
    name, settings = dataset.name, _settings(dataset)
    known = name in ledger.datasets()
    if known and ledger.totals(name).account.closed:
        raise ParameterError(_closed(name))
    budget = ledger.totals(name).account.budget if known else dataset.budget
    ledger.create_dataset(name, budget, exist_ok=True, **settings)  # refuses a changed schema
    if budget != dataset.budget:
        ledger.set_budget(name, dataset.budget)
    accounts = ledger.totals(name).analysts
    everyone = list(analysts)
    for analyst, own in _shares(dataset, everyone, accounts):
        if analyst not in accounts or accounts[analyst].budget != own:
            ledger.set_analyst(name, analyst, own)
    for who in everyone:
        if who.revoked and who.name in accounts:
            ledger.revoke(name, who.name)


def not_ready(
    ledger: Ledger,
    dataset: DatasetConfig,
    analysts: Iterable[AnalystConfig],
    registration: Registration | None,
) -> str | None:
    """Return why nobody may ask yet, in public words, or None."""
    name = dataset.name
    ask = _ask(name)
    if registration is None or name not in ledger.datasets():
        return f"Data set {name!r} is not registered. {ask}"
    totals, settings = ledger.totals(name), _settings(dataset)
    if totals.schema_digest != settings["schema_digest"]:
        return (
            f"The schema of data set {name!r} differs from the one that its history was made "
            "with. Undo the change, or enter the data under a new name with a new budget."
        )
    if totals.account.closed:
        return _closed(name)
    same = (
        totals.composition == settings["composition"]
        and sorted(totals.partition) == sorted(settings["partition"])
        and totals.each == settings["each"]
        and totals.account.budget == dataset.budget
        and all(
            who in totals.analysts and totals.analysts[who].budget == own
            for who, own in _shares(dataset, analysts, totals.analysts)
        )
    )
    if not same:
        return f"The budgets of data set {name!r} are not what the ledger says. {ask}"
    if not registration.is_current(dataset):
        return changed(name)
    return None


def changed(name: str) -> str:
    """Say that a file is not the one that was registered, or is out of reach."""
    return (
        f"The file of data set {name!r} has changed since it was registered, or cannot be read: "
        f"put it back. If it is meant to be another, {_ask(name)[0].lower()}{_ask(name)[1:]}"
    )


def _ask(name: str) -> str:
    return f"The custodian has to register it: privatest curator register {name}."


def _settings(dataset: DatasetConfig) -> dict[str, Any]:
    """Return what never changes about a data set."""
    each, parts = dataset.each, dataset.partition
    event = None if each is None else event_of(each)
    return {
        "composition": dataset.composition,
        "each": event,
        "partition": [] if parts is None else categories_of(dataset.schema, parts),
        "schema_digest": schema_digest(dataset.schema),
    }


def _closed(name: str) -> str:
    return (
        f"Data set {name!r} was closed when its data got another name, under which all that was "
        "spent counts. Use that one, or a name that was never used."
    )


def _shares(
    dataset: DatasetConfig,
    analysts: Iterable[AnalystConfig],
    accounts: Mapping[str, Account],
) -> Iterable[tuple[str, Budget]]:
    """Return what each analyst may spend of a data set; who was revoked stays so."""
    for analyst in analysts:
        revoked = analyst.revoked or (analyst.name in accounts and accounts[analyst.name].closed)
        if dataset.name in analyst.datasets and not revoked:
            yield analyst.name, analyst.budget or dataset.budget
