"""Two sizes of the same tests: a short and deterministic one for every run, a long and random one for ``make fuzz``."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from tests.conftest import FUZZ_MINUTES

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
# Examples are small as they are, and a fit is too slow for shrinking: the blob of a failure repeats it.
_PHASES = [Phase.explicit, Phase.generate]
settings.register_profile(
    "short",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=8,
    phases=_PHASES,
    suppress_health_check=_SLOW,
)
settings.register_profile(
    "long",
    deadline=None,
    max_examples=50,  # at a time: until the minutes are over
    phases=_PHASES,
    suppress_health_check=_SLOW,
    print_blob=True,
    database=None,
)
settings.load_profile("long" if FUZZ_MINUTES else "short")


@pytest.fixture(scope="session")
def n_cases() -> int:
    """Seeds of the comparisons by brute force."""
    return 114 if FUZZ_MINUTES else 4
