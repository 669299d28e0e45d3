"""``curator.toml``: which data sets there are, what they may give away, and to whom."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.curator.periods import Renewal
from privatest.curator.service_config import ServiceConfig
from privatest.data.engines import Workers
from privatest.data.reading import Place
from privatest.data.schema import Schema
from privatest.requests.catalogue import METHODS

__all__ = ["EXAMPLE", "AnalystConfig", "CuratorConfig", "DatasetConfig", "Policy", "Problem"]

ALL_TESTS = frozenset((question, name) for question, names in METHODS.items() for name in names)
USUAL_TESTS = frozenset((q, m) for q, m in ALL_TESTS if not METHODS[q][m].caution)
MOST_PERMUTATIONS = 9999
MOST_POINTS = 500  # as many as a release has where nobody says
MOST_WORK = 50_000_000_000  # seconds, or a few minutes for HSIC with estimator "u"


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be asked of a data set.

    Attributes
    ----------
    tests : set of (question, method)
        Which tests are offered.
    largest : Budget or None
        The most that one request may cost; None is as much as the data set has.
    permutations : int
        The most permutations: they cost the custodian's time.
    points : int
        The most rows of a release: they cost time, and space in the ledger.
    work : int
        The most kernel values, times permutations, of a test: a request is rehearsed before it
        is paid for, so that its time is not limited by a budget.
    """

    tests: frozenset[tuple[str, str]] = USUAL_TESTS
    largest: Budget | None = None
    permutations: int = MOST_PERMUTATIONS
    points: int = MOST_POINTS
    work: int = MOST_WORK


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """A data set as its custodian describes it.

    Attributes
    ----------
    name : str
        What requests call it.
    source : Path or str
        The file with the rows, a folder or a pattern; or the address of a database.
    schema : Schema
        The public description of its columns.
    budget : Budget
        What all answers together may cost, for ever.
    composition : {"basic", "tight", "equal"}
        How costs add up.
    each : Budget or None
        With "equal", what every request costs.
    partition : str or None
        The public column whose parts hold different people.
    policy : Policy
        What may be asked.
    table : str or None
        The table of a database.
    workers : Workers or None
        Who reads the rows, if the custodian says so.
    renew : str, int or None
        When the budget may be renewed: a period, or a number of days; None is never.
    """

    name: str
    source: Path | str
    schema: Schema
    budget: Budget
    composition: str = "basic"
    each: Budget | None = None
    partition: str | None = None
    policy: Policy = Policy()
    table: str | None = None
    workers: Workers | None = None
    renew: Renewal | None = None

    @property
    def place(self) -> Place:
        """Where the rows are; opened anew each time."""
        return Place(str(self.source), self.table, workers=self.workers)


@dataclass(frozen=True, slots=True)
class AnalystConfig:
    """Somebody who may ask.

    Attributes
    ----------
    name : str
        What they are called.
    datasets : tuple of str
        What they may ask about.
    budget : Budget or None
        The most that their answers may cost on each of them; None is the data set's own.
    subject : str
        What the issuer of their sign-in calls them.
    revoked : bool
        Whether they may not ask any more, nor see what they were answered.
    """

    name: str
    datasets: tuple[str, ...]
    budget: Budget | None = None
    subject: str = ""
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake, and the line of the file that it is on."""

    line: int
    message: str

    def __str__(self) -> str:
        """Write one line."""
        return f"line {self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class CuratorConfig:
    """All that a curator knows from its custodian.

    Attributes
    ----------
    path : Path
        Where it was read.
    ledger : str
        File or address of the ledger.
    log : Path
        The custodian's log.
    state : Path
        What was registered, so that data is validated once.
    service : ServiceConfig
        How it is served to others.
    datasets, analysts : mapping
        By their names.
    """

    path: Path
    ledger: str
    log: Path
    state: Path
    service: ServiceConfig
    datasets: Mapping[str, DatasetConfig] = field(default_factory=dict)
    analysts: Mapping[str, AnalystConfig] = field(default_factory=dict)

    @property
    def times(self) -> Path:
        """Response times that the custodian measured, beside the state file."""
        return self.state.with_name(f"{self.path.stem}.times.json")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CuratorConfig:
        """Read the file; ParameterError with the first mistake and its line."""
        from privatest.curator.config_file import read_config  # noqa: PLC0415 - it imports this module

        config, problems = read_config(path)
        if config is None or problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise ParameterError(
                f"{Path(path).name}, {problems[0]}{more} Run privatest curator check."
            )
        return config


# What `privatest curator init` writes, to be changed by hand.
EXAMPLE = """\
# A curator answers questions about data that the asker may not see, within a budget that
# cannot be overspent. Paths are relative to this file. Check it: privatest curator check

ledger = "ledger.db"            # or postgresql://user@host/database
log = "curator.log"             # what failed and where, without data; for the custodian only

[datasets.visits]
source = "visits.csv"           # a file, a folder, a pattern, or a database with table = NAME
schema = "visits.toml"          # public description of the columns: privatest schema visits.csv
epsilon = 3                     # what all answers together may cost, for ever
delta = 1e-6                    # 0 allows only tests without delta
composition = "basic"           # costs are added up; "tight" is cheaper for many small requests
# engine = "local"              # who reads large data; "dask" with scheduler = "tcp://host:8786"
# threads = 4                   # of the local engine
# partition = "region"          # a public column whose parts hold different people: requests
                                # about different parts are then charged side by side

[datasets.visits.policy]
tests = ["two-sample", "independence/hsic", "fit"]  # a question, or a question and its method
largest_epsilon = 0.5           # the most that one request may cost
largest_delta = 1e-7
largest_permutations = 9999     # they cost your time
largest_points = 500            # rows of a release: they cost time, and space in the ledger

[analysts.ada]
datasets = ["visits"]
epsilon = 1                     # her share of each of them; leave it out for no limit of her own
delta = 5e-7

# [service]                     # privatest serve: see the how-to "serve"
# url = "https://tests.example.org"
"""
