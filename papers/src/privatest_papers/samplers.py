"""Data that the papers simulate."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["PROBLEMS", "bump", "cubes", "perturbed_uniform", "problem", "sample_of"]

Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats]

# Raj et al. (2019), table 1: name and number of columns
PROBLEMS = {"SG": 50, "GMD": 100, "GVD": 50, "Blobs": 2}


def perturbed_uniform(
    size: int,
    dimension: int,
    amplitude: float,
    rng: np.random.Generator,
    bumps: int = 1,
) -> Floats:
    """Draw from Kim and Schrab's (18): density 1 + amplitude · prod_j P(bumps · x_j mod 1)."""
    rows = np.empty((0, dimension))
    while len(rows) < size:
        proposed = rng.uniform(size=(2 * size + 16, dimension))
        density = 1 + amplitude * np.prod(bump(bumps * proposed % 1), axis=1)
        rows = np.vstack([rows, proposed[rng.uniform(0, 1 + amplitude, len(density)) < density]])
    return rows[:size]


def bump(x: Floats) -> Floats:
    """Return P of section 6.2: up on (0, 1/2), down on (1/2, 1)."""
    with np.errstate(divide="ignore", over="ignore"):
        rise = np.exp(1 - 1 / np.maximum(1 - (4 * x - 1) ** 2, 1e-300)) * (x < 0.5)
        fall = np.exp(1 - 1 / np.maximum(1 - (4 * x - 3) ** 2, 1e-300)) * (x > 0.5)
    result: Floats = rise - fall
    return result


def cubes(
    dimension: int, n: int, rng: np.random.Generator, *, apart: float = 0.0, mixed: bool = False
) -> tuple[Floats, Floats, float]:
    """Draw two samples of Dunsche, Kutta and Dette's section 4, and their bound m.

    Uniform on cubes whose means are ``apart``; ``mixed`` by the tridiagonal matrix of appendix C.
    """
    shift, root = apart / math.sqrt(dimension), math.sqrt(3)
    x, y = rng.uniform(-root, root, size=(2, n, dimension))
    y = y + shift
    if not mixed:
        return x, y, root + shift
    return _mixed(x), _mixed(y), (root + shift) * 5 / 3


def _mixed(rows: Floats) -> Floats:
    result = rows.copy()
    result[:, 1:] += rows[:, :-1] / 3
    result[:, :-1] += rows[:, 1:] / 3
    return result


def problem(name: str, n: int, rng: np.random.Generator, shift: float = 1.0, d: int = 0) -> Pair:
    """Draw two samples of one of Raj et al.'s problems, in ``d`` columns or those of the paper."""
    columns = d or PROBLEMS[name]
    x, y = rng.standard_normal((n, columns)), rng.standard_normal((n, columns))
    if name == "GMD":
        y[:, 0] += shift
    elif name == "GVD":
        y[:, 0] *= math.sqrt(2.0)
    elif name == "Blobs":
        y @= np.linalg.cholesky(np.array([[1.0, 0.6], [0.6, 1.0]])).T
        x += 5 * (rng.integers(4, size=(n, 2)) - 1.5)
        y += 5 * (rng.integers(4, size=(n, 2)) - 1.5)
    return x, y


def sample_of(law: str, n: int, rng: np.random.Generator, centre: float = 0.0) -> Floats:
    """Draw from a law of Awan and Wang's simulations, moved to ``centre``."""
    if law == "exponential":  # its median is 0
        return centre + rng.standard_exponential(n) - math.log(2.0)
    draws = {"normal": rng.standard_normal, "Cauchy": rng.standard_cauchy}
    rows: Floats = rng.laplace(size=n) if law == "Laplace" else draws[law](n)
    return centre + rows
