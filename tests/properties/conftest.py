"""Two sizes of the same tests: a short and deterministic one for every run, a long and random one for ``make fuzz``.

``FAIRPCA_FUZZ=1`` selects the long one; ``FAIRPCA_FUZZ_EXAMPLES`` sets the examples of each property.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings

FUZZ = os.environ.get("FAIRPCA_FUZZ", "") not in ("", "0")
EXAMPLES = int(os.environ.get("FAIRPCA_FUZZ_EXAMPLES", "300"))

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
    max_examples=EXAMPLES,
    phases=_PHASES,
    suppress_health_check=_SLOW,
    print_blob=True,
    database=None,
)
settings.load_profile("long" if FUZZ else "short")


@pytest.fixture(scope="session")
def n_cases() -> int:
    """Seeds of the comparisons by brute force."""
    return 114 if FUZZ else 4


@pytest.fixture(scope="session")
def counts() -> Counter[str]:
    return COUNTS


#: Fits by class of estimator, counted where the properties are tested.
COUNTS: Counter[str] = Counter()


def pytest_terminal_summary(terminalreporter) -> None:
    if FUZZ and COUNTS:
        terminalreporter.section("fits by class")
        for name, count in sorted(COUNTS.items()):
            terminalreporter.write_line(f"{name:20} {count:8d}")
