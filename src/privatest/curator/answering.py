"""From a prepared request and a table to a result, with secret noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privatest.core.errors import DataError, EngineError, PrivacyError
from privatest.core.noise import SecureNoise
from privatest.core.spending import uncharged
from privatest.curator.contents import stamp
from privatest.curator.registration import Registration
from privatest.data.reading import Place
from privatest.data.sources import Source
from privatest.requests.rehearsal import quiet, rehearse_sizes
from privatest.requests.request import Prepared
from privatest.requests.results import Result

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.curator.config import DatasetConfig

__all__ = ["look", "quietly", "ready"]

_MOST_HELD = 1 << 28  # numbers of rows in private groups, 2 GiB


def ready(prepared: Prepared, place: Place, rows: int) -> None:
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


def look(
    prepared: Prepared, dataset: DatasetConfig, place: Place, registered: Registration
) -> Result:
    """Read the private rows and answer. From here on nothing but the result may leave."""
    categories = dataset.schema.categorical_names
    table = place.read(prepared.reads, categories, registered=True)
    if len(table) != registered.rows or stamp(dataset) != registered.stamp:
        raise DataError("the file changed since it was validated.")
    if isinstance(table, Source) and _holds(prepared, table):
        # how far a source is read again would tell where a group's rows are; so would pieces
        table = table.load().combine_chunks()
    return quietly(prepared, table)


def _holds(prepared: Prepared, source: Source) -> bool:
    """Whether rows of private groups are held, by public numbers."""
    grouping = prepared.grouping
    private = grouping is not None and grouping.membership == "private"
    return private and len(source) * len(source.names) <= _MOST_HELD


def quietly(prepared: Prepared, table: pa.Table | Source) -> Result:
    """Answer without a warning: it may quote a value.

    The table is private, or it is made up: both take the same way.
    """
    with quiet(), uncharged():
        result = prepared.run(table, noise=SecureNoise(constant_time=True))
    spent, price = result.spent, prepared.request.budget
    if result.simulated or spent.epsilon > price.epsilon or spent.delta > price.delta:
        raise PrivacyError("the answer cost more than its price.")
    return result
