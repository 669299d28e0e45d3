"""Alternatives that power is measured on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest_papers.samplers import perturbed_uniform

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def bumps(n: int, d: int, count: int, amplitude: float, rng: np.random.Generator) -> Pair:
    """Return uniform rows, and rows with bumps in their density."""
    return rng.uniform(size=(n, d)), perturbed_uniform(n, d, amplitude, rng, count)


def bump_columns(n: int, d: int, amplitude: float, rng: np.random.Generator) -> Pair:
    """Return uniform rows, and rows with a bump in the density of each column."""
    columns = [perturbed_uniform(n, 1, amplitude, rng) for _ in range(d)]
    return rng.uniform(size=(n, d)), np.hstack(columns)


def beta_columns(n: int, d: int, count: int, power: float, rng: np.random.Generator) -> Pair:
    """Return uniform rows, and rows of which ``count`` columns are Beta(power, 1)."""
    x, y = rng.uniform(size=(2, n, d))
    y[:, :count] = rng.beta(power, 1, size=(n, count))
    return x, y


def shifted(n: int, d: int, count: int, by: float, rng: np.random.Generator) -> Pair:
    """Return normal rows, bounds ±4 sd as [0, 1]; ``count`` columns shifted by ``by`` sd."""
    x, y = rng.normal(size=(2, n, d))
    y[:, :count] += by
    return 0.5 + x / 8, 0.5 + y / 8


def scaled(n: int, d: int, factor: float, rng: np.random.Generator) -> Pair:
    """Return normal rows, bounds ±4 sd as [0, 1], the second sample wider by ``factor``."""
    x, y = rng.normal(size=(2, n, d))
    return 0.5 + x / 8, 0.5 + factor * y / 8


def mixture(n: int, d: int, share: float, rng: np.random.Generator) -> Pair:
    """Return normal rows; in the second sample a share of rows is 1.6 sd off, up or down."""
    x, y = rng.normal(size=(2, n, d))
    off = rng.random(n) < share
    y[off] += rng.choice((-1.6, 1.6), size=(int(off.sum()), 1))
    return 0.5 + x / 8, 0.5 + y / 8


def correlated(n: int, d: int, rho: float, rng: np.random.Generator) -> Pair:
    """Return normal rows, bounds ±4 sd as [0, 1]; two columns of the second are correlated."""
    x, y = rng.normal(size=(2, n, d))
    y[:, 1] = rho * y[:, 0] + np.sqrt(1 - rho**2) * y[:, 1]
    return 0.5 + x / 8, 0.5 + y / 8


def crowded(n: int, d: int, by: float, rng: np.random.Generator) -> Pair:
    """Return rows in a tenth of the box, two columns of the second sample shifted."""
    x, y = rng.normal(0.5, 0.03, size=(2, n, d))
    y[:, :2] += by
    return x, y


def diagonal(n: int, d: int, power: float, rng: np.random.Generator) -> Pair:
    """Return rows on the diagonal of the box, uniform and Beta(power, 1) along it."""
    return np.tile(rng.uniform(size=(n, 1)), d), np.tile(rng.beta(power, 1, size=(n, 1)), d)


def poisson(n: int, first: float, second: float, rng: np.random.Generator) -> Pair:
    """Return counts."""
    return rng.poisson(first, size=(n, 1)).astype(float), rng.poisson(second, size=(n, 1)).astype(
        float
    )


def mixed_table(n: int, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return ages, sexes and regions; in the second more of the old are in the south."""

    def table(south: float) -> dict[str, Any]:
        age = np.clip(rng.normal(45, 16, size=n), 0, 100)
        region = rng.choice(list("news"), size=n)
        region[(age > 50) & (rng.random(n) < south)] = "s"
        return {"age": age, "sex": rng.choice(["f", "m"], size=n), "region": region}

    return table(0.0), table(0.16)
