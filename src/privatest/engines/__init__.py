"""One pass over rows, wherever they are: blocks are added up apart, and the sums merged."""

from privatest.data.source import Workers
from privatest.data.stream import BEFORE_LOADING


def _check_scheduler(workers: Workers) -> None:
    """Refuse a scheduler that does not answer, though a test that holds its rows needs none."""
    if workers.scheduler is not None:
        from privatest.engines.cluster import check  # noqa: PLC0415 -- not needed to import

        check(workers)


BEFORE_LOADING.append(_check_scheduler)
