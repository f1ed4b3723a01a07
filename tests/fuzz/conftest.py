"""Cases from random numbers: a few that are always the same, or as many as a time allows."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import FUZZ_MINUTES, fuzz_seconds

#: The number of one case to repeat, as a failure names it.
CASE = os.environ.get("FAIRPCA_FUZZ_CASE")

Cases = Callable[[int], Iterator[np.random.Generator]]


@pytest.fixture
def cases(request: pytest.FixtureRequest, counts: Counter[str]) -> Cases:
    """Generators of random numbers, one per case; the number of the last one is told if it fails."""
    done: list[int] = []

    def numbers(small: int) -> Iterator[int]:
        if CASE is not None:
            yield int(CASE)
        elif not FUZZ_MINUTES:
            yield from range(small)
        else:
            first, end = time.time_ns() % 2**40, time.monotonic() + fuzz_seconds()
            while time.monotonic() < end:
                yield first + len(done)

    def generate(small: int) -> Iterator[np.random.Generator]:
        for number in numbers(small):
            done.append(number)
            request.node.user_properties[:] = [("FAIRPCA_FUZZ_CASE", number)]
            counts[request.node.name] += 1
            yield np.random.default_rng(number)

    return generate


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure says how to repeat it."""
    report = yield
    if report.failed and item.user_properties:
        name, number = item.user_properties[0]
        report.sections.append(("Repeat it with", f"{name}={number}"))
    return report


@pytest.fixture(scope="session")
def corpus() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path(__file__).with_name("corpus").iterdir())}
