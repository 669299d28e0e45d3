"""Workers of a Dask cluster: each reads its own rows, and only sums come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privatest.data.source import Workers
from privatest.engines.progress import told
from privatest.engines.summaries import Job, Summary

__all__ = ["run"]

_RETRIES = 3  # of a job whose worker dies


def run(jobs: Sequence[tuple[int, Job]], found: list[Summary], workers: Workers) -> None:
    """Run the jobs on the cluster and merge each into its place of ``found``, once."""
    import distributed  # noqa: PLC0415

    api: Any = distributed  # it has no types

    watcher, done = told(), 0
    total = sum(job.stop - job.start for _, job in jobs)
    with api.Client(workers.scheduler) as client:
        waiting: dict[Any, tuple[int, Job]] = {
            client.submit(_run, job, retries=_RETRIES, pure=False): (place, job)
            for place, job in jobs
        }
        for finished in api.as_completed(list(waiting)):
            place, job = waiting.pop(finished)
            found[place].merge(finished.result())
            done += job.stop - job.start
            if watcher is not None:
                watcher(done, total)


def _run(job: Job) -> Summary:
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    with threadpool_limits(1, user_api="blas"):
        return job.run()
