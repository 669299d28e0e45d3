"""From a prepared request and a table to a result, with secret noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privatest.core.errors import DataError, PrivacyError
from privatest.core.noise import SecureNoise
from privatest.curator.registration import Registration, stamp
from privatest.questions import Prepared, Result
from privatest.questions.rehearsal import quiet

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.curator.config import DatasetConfig

__all__ = ["look", "quietly"]


def look(prepared: Prepared, dataset: DatasetConfig, registered: Registration) -> Result:
    """Read the private rows and answer. From here on nothing but the result may leave."""
    from privatest.data.sources import read_table  # noqa: PLC0415

    categories = dataset.schema.categorical_names
    table = read_table(dataset.source, prepared.reads, text=categories, registered=True)
    if table.num_rows != registered.rows or stamp(dataset.source) != registered.stamp:
        raise DataError("the file changed since it was validated.")
    return quietly(prepared, table)


def quietly(prepared: Prepared, table: pa.Table) -> Result:
    """Answer without a warning: it may quote a value.

    The table is private, or it is made up: both take the same way.
    """
    with quiet():
        result = prepared.run(table, noise=SecureNoise())
    spent, price = result.spent, prepared.request.budget
    if result.simulated or spent.epsilon > price.epsilon or spent.delta > price.delta:
        raise PrivacyError("the answer cost more than its price.")
    return result
