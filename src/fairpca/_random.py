"""From ``random_state`` to generators. None is a fixed seed here, so that every result can be repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["generator", "legacy_generator", "repeatable", "seed_from"]


def seed_from(random_state: Any) -> int:
    """A seed for generators of our own, drawn from a ``random_state`` as scikit-learn takes it.

    Examples
    --------
    >>> from fairpca._random import seed_from
    >>> seed_from(None), seed_from(1) == seed_from(1), seed_from(1) == seed_from(2)
    (0, True, False)
    """
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31))


def generator(random_state: Any) -> np.random.Generator:
    """A generator seeded by :func:`seed_from`."""
    return np.random.default_rng(seed_from(random_state))


def legacy_generator(random_state: Any) -> np.random.RandomState:
    """A generator of the kind that scikit-learn uses."""
    return check_random_state(repeatable(random_state))


def repeatable(random_state: Any) -> Any:
    """A ``random_state`` for scikit-learn's own functions, where None would be another result every time."""
    return 0 if random_state is None else random_state
