"""From an admitted inquiry and a table to a result: filter, split, test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privatest.core.errors import DataError, PrivacyError
from privatest.core.noise import SecureNoise
from privatest.curator.inquiry import Admitted
from privatest.curator.registration import Registration, stamp
from privatest.data.schema import Schema
from privatest.questions.grouping import Grouping
from privatest.questions.rehearsal import quiet
from privatest.questions.results import Result

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.curator.config import DatasetConfig

__all__ = ["answer", "look", "quietly"]


def answer(admitted: Admitted, schema: Schema, table: pa.Table) -> Result:
    """Answer from the rows that an inquiry is about, with secret noise.

    The table is private, or it is made up: both take the same way.
    """
    rows = _chosen(table, admitted.codes, schema).select(list(admitted.prepared.names))
    if rows.num_rows == 0:  # by public columns only
        raise DataError("no row passes the filter where.")
    request = admitted.inquiry.request
    prepared = admitted.prepared
    if request.parts.get("group") is not None:
        prepared = replace(prepared, call=_splitting(request.parts, schema))
    result = prepared.run(rows, noise=SecureNoise())
    spent, price = result.spent, request.budget
    if result.simulated or spent.epsilon > price.epsilon or spent.delta > price.delta:
        raise PrivacyError("the answer cost more than its price.")
    return result


def look(admitted: Admitted, dataset: DatasetConfig, registered: Registration) -> Result:
    """Read the private rows and answer. From here on nothing but the result may leave."""
    from privatest.data.sources import read_table  # noqa: PLC0415

    schema = dataset.schema
    categories = schema.categorical_names
    table = read_table(dataset.source, admitted.names, text=categories, registered=True)
    if table.num_rows != registered.rows or stamp(dataset.source) != registered.stamp:
        raise DataError("the file changed since it was validated.")
    return quietly(admitted, schema, table)


def quietly(admitted: Admitted, schema: Schema, table: pa.Table) -> Result:
    """Answer without a warning: it may quote a value."""
    with quiet():
        return answer(admitted, schema, table)


def _chosen(table: pa.Table, codes: Mapping[str, frozenset[int]], schema: Schema) -> pa.Table:
    keep = np.ones(table.num_rows, dtype=bool)
    for name, wanted in codes.items():
        own = schema.select([name]).encode(table.select([name]))[:, 0]
        keep &= np.isin(own, sorted(wanted))
    return table.filter(keep) if codes else table


def _splitting(parts: Mapping[str, Any], schema: Schema) -> Callable[..., tuple[Any, ...]]:
    """Split by the schema's codes. A private group may be empty: failing then would tell so."""
    column = parts["group"]
    grouping = Grouping.ask(column, schema, parts.get("groups"), None)

    def split(table: pa.Table) -> tuple[pa.Table, pa.Table]:
        codes = schema.select([column]).encode(table.select([column]))[:, 0]
        first = codes == grouping.codes[0]
        second = ~first if grouping.has_rest else codes == grouping.codes[1]
        # in one piece: how many pieces have a row of a private group would show in the time
        rows = table.drop_columns([column]).combine_chunks()
        return rows.filter(first), rows.filter(second)

    return split
