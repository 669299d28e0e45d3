"""Images for Kim and Schrab's section 6.3: scikit-learn's digits, or a folder with CelebA.

CelebA may not be passed on. Whoever has it sets PRIVATEST_CELEBA to the folder that holds
``list_attr_celeba.txt`` and ``img_align_celeba``.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError

__all__ = ["FOLDER", "celeba_names", "image_samples"]

FOLDER = "PRIVATEST_CELEBA"
Floats = NDArray[np.float64]


def image_samples(kind: str, n: int, corruption: float, rng: np.random.Generator) -> Any:
    """Draw n images of a first kind, and n of which a share is of a second kind.

    Parameters
    ----------
    kind : {"digits", "CelebA"}
        Digits below 5 and above, or women and men.
    n : int
        Images in each sample, drawn with replacement.
    corruption : float
        The share c of the paper.
    """
    mixed = rng.random(n) < corruption
    if kind == "digits":
        first, second = _digits()
        x = first[rng.integers(len(first), size=n)]
        y = first[rng.integers(len(first), size=n)]
        y[mixed] = second[rng.integers(len(second), size=int(mixed.sum()))]
        return x, y
    women, men = celeba_names(_folder())
    chosen = rng.choice(women, size=n), rng.choice(women, size=n)
    chosen[1][mixed] = rng.choice(men, size=int(mixed.sum()))
    return tuple(_pictures(names) for names in chosen)


@lru_cache(maxsize=1)
def _digits() -> tuple[Floats, Floats]:
    """Return images of 8 × 8 pixels from 0 to 1, of digits below 5 and above."""
    if find_spec("sklearn") is None:
        raise ParameterError("this experiment needs scikit-learn: pip install scikit-learn.")
    from sklearn.datasets import load_digits  # noqa: PLC0415

    found = load_digits()
    rows: Floats = found.data.astype(np.float64) / 16
    return rows[found.target < 5], rows[found.target >= 5]


def _folder() -> Path:
    given = os.environ.get(FOLDER)
    if not given:
        raise ParameterError(
            f"CelebA may not be passed on: set {FOLDER} to the folder that holds "
            "list_attr_celeba.txt and img_align_celeba, or run kim-schrab-digits."
        )
    return Path(given)


@lru_cache(maxsize=1)
def celeba_names(folder: Path) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """Return the files of women and of men, by the attribute "Male" of CelebA's list."""
    try:
        lines = (folder / "list_attr_celeba.txt").read_text(encoding="utf-8").splitlines()
        place = lines[1].split().index("Male") + 1
        labels = {fields[0]: fields[place] for line in lines[2:] if (fields := line.split())}
    except (OSError, ValueError, IndexError):
        raise ParameterError(
            f"{FOLDER} must be a folder with CelebA's list_attr_celeba.txt and img_align_celeba."
        ) from None
    women = [name for name, label in labels.items() if label == "-1"]
    men = [name for name, label in labels.items() if label == "1"]
    return np.array(women), np.array(men)


def _pictures(names: NDArray[np.str_]) -> Floats:
    """Read images at full size, a row each, from 0 to 1."""
    if find_spec("PIL") is None:
        raise ParameterError("this experiment needs Pillow: pip install pillow.")
    from PIL import Image  # noqa: PLC0415

    folder = _folder() / "img_align_celeba"
    rows = []
    for name in names:
        with Image.open(folder / str(name)) as picture:
            rows.append(np.asarray(picture, dtype=np.float64).ravel() / 255)
    return np.stack(rows)
