"""Runs with secret noise that can be repeated, for tests that look at what comes out of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from privatest.noise import SecureNoise, SimulatedNoise

DRAWS = (
    "laplace",
    "gaussian",
    "discrete_laplace",
    "discrete_laplaces",
    "below",
    "permutation",
    "key",
    "uniforms",
)


def seed_everything(patch: pytest.MonkeyPatch, seed: int) -> None:
    """Let secret noise, and public randomness that was given no seed, come from this one.

    Results do not say so: they look as they do with secret noise, and are not private.
    """
    source, make = SimulatedNoise(seed), np.random.default_rng
    public = np.random.SeedSequence(seed)

    def draw(name: str) -> Callable[..., Any]:
        return lambda _self, *arguments: getattr(source, name)(*arguments)

    for name in DRAWS:
        patch.setattr(SecureNoise, name, draw(name))
    patch.setattr(
        np.random,
        "default_rng",
        lambda given=None: make(public.spawn(1)[0] if given is None else given),
    )
