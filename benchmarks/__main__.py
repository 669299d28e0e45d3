"""Measure speed, print the tables and write them to benchmarks/results (`make bench`).

Power and level have programs of their own: python -m benchmarks.power.mmd --help, and so on.
"""

from __future__ import annotations

import argparse
from importlib import import_module

SPEED = (
    "mmd",
    "hsic",
    "ks",
    "family",
    "release",
    "hotelling",
    "embedding",
    "streams",
    "ledger",
)


def main() -> None:
    """Run the benchmarks that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"which: {', '.join(SPEED)}; all by default",
    )
    names = parser.parse_args().names
    for name in names:  # argparse cannot check choices of a list that may be empty
        if name not in SPEED:
            parser.error(f"there is no benchmark {name!r}; there are {', '.join(SPEED)}")
    for name in names or SPEED:
        import_module(f"benchmarks.speed.{name}").main()


if __name__ == "__main__":
    main()
