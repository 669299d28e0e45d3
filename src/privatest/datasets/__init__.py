"""Public example data that comes with privatest."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

__all__ = ["Example", "randhie"]


class Example(NamedTuple):
    """A data file and the schema that describes it."""

    data: Path
    schema: Path


def randhie() -> Example:
    """Return the RAND health insurance experiment: 20,190 rows, one per person and year.

    The schema describes the columns. The data is in the public domain; this is the copy that
    statsmodels distributes.

    Examples
    --------
    >>> randhie().data.name, randhie().schema.name
    ('randhie.csv.gz', 'randhie.toml')
    """
    folder = Path(str(files(__name__)))
    return Example(folder / "randhie.csv.gz", folder / "randhie.toml")
