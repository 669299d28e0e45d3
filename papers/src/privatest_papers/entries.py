"""All experiments by name; a paper's file is read when one of them is wanted."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from privatest.core.errors import ParameterError
from privatest_papers.experiment import Experiment

__all__ = ["all_experiments", "experiment"]

_PAPERS = ("kim_schrab", "awan_wang", "raj", "dunsche", "balog")


@cache
def all_experiments() -> dict[str, Experiment]:
    """Return every experiment by its name, paper by paper."""
    modules = (import_module(f"privatest_papers.experiments.{paper}") for paper in _PAPERS)
    return {each.name: each for module in modules for each in module.experiments()}


def experiment(name: str) -> Experiment:
    """Return one experiment."""
    found = all_experiments().get(name)
    if found is None:
        raise ParameterError(
            f"NAME must be an experiment, such as kim-schrab-2; `privatest reproduce list` has "
            f"all {len(all_experiments())}."
        )
    return found
