"""The paper's dpHSIC as its authors compute it, compiled by JAX (not a dependency of privatest).

Install it beside privatest to have it measured in the same run: pip install jax
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray


def hsic_call(
    x: NDArray[np.float64], y: NDArray[np.float64], n_permutations: int
) -> Callable[[], object] | None:
    """Return a compiled, warm call with one bandwidth in float32; None without JAX."""
    if find_spec("jax") is None:
        return None
    jax: Any = import_module("jax")
    jnp: Any = import_module("jax.numpy")
    n = len(x)

    def centred_gram(rows: Any, *, centre: bool) -> Any:
        norms = jnp.square(rows).sum(axis=1)
        gram = jnp.exp(-(norms[:, None] + norms - 2 * rows @ rows.T))
        if not centre:
            return gram
        gram = gram - gram.mean(axis=0)
        return gram - gram.mean(axis=1)[:, None]

    def decide(key: Any, left_rows: Any, right_rows: Any) -> Any:
        left = centred_gram(left_rows, centre=False)
        right = centred_gram(right_rows, centre=True)
        keys = jax.random.split(key)
        rows = jnp.tile(jnp.arange(n), (n_permutations + 1, 1))
        shuffles = jax.random.permutation(keys[0], rows, axis=1, independent=True)
        shuffles = shuffles.at[0].set(jnp.arange(n))
        traces = jax.lax.map(lambda shuffle: (left[shuffle][:, shuffle] * right).sum(), shuffles)
        noise = jax.random.laplace(keys[1], shape=(n_permutations + 1,)) * 8 * (n - 1) / n**2
        noisy = jnp.sqrt(traces) / n + noise
        return (noisy >= noisy[0]).mean() <= 0.05

    compiled = jax.jit(decide)
    arguments = jax.random.PRNGKey(0), jnp.array(x), jnp.array(y)

    def call() -> object:
        return compiled(*arguments).block_until_ready()

    call()
    return call
