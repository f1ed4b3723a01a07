"""All measurements on one data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fairpca.linalg import scipy_threads_only
from fairpca.moments import group_moments
from reproductions.samadi2018 import algorithms, protocol
from reproductions.samadi2018.algorithms import Rounded, Trace
from reproductions.samadi2018.protocol import Curves, Data, FairCurves
from reproductions.samadi2018.published import PUBLISHED, STEPS, Published

__all__ = ["Erratum", "Samples", "Search", "Study", "count_steps", "measure", "published_of"]

#: Dimensions of the paper's figures: 20 of the images, all 21 of the table.
_MOST_OF_IMAGES, _MOST_OF_TABLES = 20, 21
_QUICK_SEARCHES = (5, 8, 12)
_QUICK_IMAGES = (1, 2, 3, 5, 10, 15, 20)
#: Rows in an equal-sized sample: "1000 faces, men and women equiprobably", read as a total and as the size of each.
_SAMPLE_TOTAL = 1000
_SAMPLES, _QUICK_SAMPLES = 20, 2
#: FairPCA on the samples, which the paper does not show, for these dimensions only.
_FAIR_ON_SAMPLES = (1, 5, 10, 20)
#: Steps of multiplicative weights that are drawn, where they cost little.
_LONG_TRACE = 50
#: Algorithm 1 needs a semidefinite program whose cost grows steeply with the number of features.
_MOST_FEATURES_SDP = 60


@dataclass(frozen=True)
class Samples:
    """Equal-sized samples; arrays of shape (samples, dimensions, groups)."""

    size: int
    pca: list[Curves]
    fair: list[FairCurves]

    def mean(self, of: str) -> np.ndarray:
        """Mean of ``errors`` or ``losses`` of PCA over the samples."""
        return np.mean([getattr(curves, of) for curves in self.pca], axis=0)

    def fair_mean(self, of: str) -> np.ndarray:
        return np.mean([getattr(curves, of) for curves in self.fair], axis=0)


@dataclass(frozen=True)
class Search:
    """Multiplicative weights and our search in one dimension d, by eigenproblems solved."""

    dimension: int
    rate: float
    authors_steps: int
    fixed: Trace
    tuned_rate: float
    tuned: Trace | None
    adaptive: float
    ours: np.ndarray
    optimum: float
    eigengap: float

    def excess(self, values: np.ndarray, steps: int) -> float:
        """By how much a trace lies above the optimum after so many steps."""
        return float(values[steps - 1] - self.optimum)


@dataclass(frozen=True)
class Erratum:
    """What the authors' credit script computes in one dimension d."""

    dimension: int
    pca: np.ndarray
    fair: float


@dataclass(frozen=True)
class Study:
    """Everything measured on one data set.

    ``pooled`` is FairPCA with groups about the common mean, as in the text; ``sizes_left_out`` counts the sizes of
    samples that a quick run does not draw.
    """

    data: Data
    published: Published | None
    pca: Curves
    pca_pooled: Curves
    fair: FairCurves
    pooled: FairCurves | None
    complete: FairCurves | None
    samples: list[Samples]
    searches: list[Search]
    rounded: list[Rounded]
    errata: list[Erratum]
    remarks: list[str]
    sizes_left_out: int = 0

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def title(self) -> str:
        return self.published.title if self.published else self.name

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(map(str, self.pca.groups))

    @property
    def worse(self) -> int | None:
        """Column of the group that the paper finds PCA to represent worse."""
        if self.published is None or self.published.worse not in self.groups:
            return None
        return self.groups.index(self.published.worse)


@dataclass(frozen=True)
class _Plan:
    """Which dimensions each part covers."""

    curves: Sequence[int]
    pooled: Sequence[int]
    searches: Sequence[int]
    rounded: Sequence[int]
    errata: Sequence[int]
    sizes: Sequence[int]
    samples: int
    fair_on_samples: Sequence[int]
    sizes_left_out: int = 0

    @property
    def steps(self) -> int:
        return (
            len(self.curves)
            + len(self.pooled)
            + len(self.searches)
            + len(self.rounded)
            + len(self.sizes) * self.samples
        )


def count_steps(data: Data, *, quick: bool, errata: bool) -> int:
    """How many times ``step`` is called."""
    return _plan(data, quick, errata).steps


def _plan(data: Data, quick: bool, errata: bool) -> _Plan:
    smallest = int(min(np.unique(data.groups, return_counts=True)[1]))
    most = min(_MOST_OF_IMAGES if data.images else _MOST_OF_TABLES, data.X.shape[1], smallest)
    return _image_plan(data, most, smallest, quick) if data.images else _table_plan(data, most, quick, errata)


def _table_plan(data: Data, most: int, quick: bool, errata: bool) -> _Plan:
    everything = range(1, most + 1)
    proper = [d for d in everything if d < data.X.shape[1]]
    searched = [d for d in _QUICK_SEARCHES if d in proper] or proper[:1] if quick else proper
    affordable = searched if data.X.shape[1] <= _MOST_FEATURES_SDP else []
    return _Plan(everything, everything, searched, affordable, everything if errata else (), (), 0, ())


def _image_plan(data: Data, most: int, smallest: int, quick: bool) -> _Plan:
    curves = [d for d in _QUICK_IMAGES if d <= most] if quick else list(range(1, most + 1))
    searched = [d for d in ((5,) if quick else (1, 2, 3, 4, 5, 10, 20)) if d <= most and d < data.X.shape[1]]
    sizes = _sample_sizes(len(set(data.groups.tolist())), smallest)
    return _Plan(
        curves=curves,
        pooled=() if quick else curves,
        searches=searched,
        rounded=(),
        errata=(),
        sizes=sizes[:1] if quick else sizes,
        sizes_left_out=len(sizes[1:]) if quick else 0,
        samples=_QUICK_SAMPLES if quick else _SAMPLES,
        fair_on_samples=[d for d in ((5, 20) if quick else _FAIR_ON_SAMPLES) if d <= most],
    )


def _sample_sizes(n_groups: int, smallest: int) -> list[int]:
    """Rows of each group, under both readings of the paper's sentence."""
    return sorted({min(_SAMPLE_TOTAL // n_groups, smallest), min(_SAMPLE_TOTAL, smallest)})


def measure(data: Data, *, quick: bool, errata: bool, step: Callable[[str], None]) -> Study:
    """Measure; ``step`` is called with a description before each piece of work."""
    plan = _plan(data, quick, errata)
    _ = data.moments  # computed and kept here, by numpy with all its threads
    with scipy_threads_only():  # the rest is eigenproblems, which scipy solves
        return _measured(data, plan, step)


def _measured(data: Data, plan: _Plan, step: Callable[[str], None]) -> Study:
    published, remarks = published_of(data)
    fair = protocol.fair_curves(data.moments, plan.curves, step=lambda d: step(f"{data.name}: d = {d}"))
    rounded = _rounded(data, plan, step, remarks)
    return Study(
        data=data,
        published=published,
        pca=protocol.pca_curves(data.moments, plan.curves),
        pca_pooled=protocol.pca_curves(data.moments, plan.curves, center="pooled"),
        fair=fair,
        pooled=_pooled(data, plan, step),
        complete=_complete(data, plan),
        samples=[_samples(data, size, plan, step) for size in plan.sizes],
        searches=[_search(data, d, fair, step) for d in plan.searches],
        rounded=rounded,
        errata=[_erratum(data, d) for d in plan.errata],
        remarks=remarks,
        sizes_left_out=plan.sizes_left_out,
    )


def published_of(data: Data) -> tuple[Published | None, list[str]]:
    """What the paper says about this data set, and a remark if only the name matches one of its data sets."""
    published = PUBLISHED.get(data.name)
    if published is None or len(data.X) == published.rows:
        return published, []
    return None, [
        f"{len(data.X)} rows, not the {published.rows} of the paper's data of this name: not compared with it."
    ]


def _pooled(data: Data, plan: _Plan, step: Callable[[str], None]) -> FairCurves | None:
    if not plan.pooled:
        return None
    return protocol.fair_curves(
        data.moments, plan.pooled, center="pooled", step=lambda d: step(f"{data.name}: d = {d}, common mean")
    )


def _complete(data: Data, plan: _Plan) -> FairCurves | None:
    if data.complete is None:
        return None
    return protocol.fair_curves(group_moments(data.complete, sensitive_features=data.groups), plan.curves)


def _samples(data: Data, size: int, plan: _Plan, step: Callable[[str], None]) -> Samples:
    pca, fair = [], []
    most = max(plan.curves)
    for seed in range(plan.samples):
        step(f"{data.name}: sample {seed + 1} of {size} per group")
        moments = protocol.equal_sample(data, size, seed)
        pca.append(protocol.pca_curves(moments, range(1, most + 1)))
        fair.append(protocol.fair_curves(moments, plan.fair_on_samples))
    return Samples(size, pca, fair)


def _search(data: Data, dimension: int, fair: FairCurves, step: Callable[[str], None]) -> Search:
    """The authors' rates and steps: 1 and 10 for the table, 20 / d and 5 for the images."""
    step(f"{data.name}: weights, d = {dimension}")
    rate, authors_steps = (20.0 / dimension, 5) if data.images else (1.0, 10)
    traces = _traces(data, dimension, rate)
    tuned = min(traces, key=lambda candidate: traces[candidate].values[STEPS - 1])
    row = fair.row(dimension)
    end = np.array([[fair.calls[row], fair.largest[row]]])
    return Search(
        dimension=dimension,
        rate=rate,
        authors_steps=authors_steps,
        fixed=traces[rate],
        tuned_rate=tuned,
        tuned=traces[tuned] if len(traces) > 1 else None,
        adaptive=algorithms.adaptive_weights(data.moments, dimension, STEPS),
        ours=end if data.images else algorithms.stopped_early(data.moments, dimension),
        optimum=float(fair.largest[row]),
        eigengap=algorithms.eigengap(data.moments, dimension, fair.weights[row]),
    )


def _traces(data: Data, dimension: int, rate: float) -> dict[float, Trace]:
    """By rate: the given one, and others where an eigenproblem costs little."""
    rates, steps = ([rate], STEPS) if data.images else ([rate, *algorithms.RATES], _LONG_TRACE)
    oracle = algorithms.true_oracle(data.moments, dimension)
    n_groups = len(data.moments.labels)
    return {one: algorithms.multiplicative_weights(oracle, n_groups, one, steps) for one in dict.fromkeys(rates)}


def _rounded(data: Data, plan: _Plan, step: Callable[[str], None], remarks: list[str]) -> list[Rounded]:
    found = []
    for d in plan.rounded:
        step(f"{data.name}: Algorithm 1, d = {d}")
        try:
            found.append(algorithms.algorithm_one(data.moments, d))
        except ImportError as problem:
            remarks.append(f"Algorithm 1 was left out: {problem}")
            break
    return found


def _erratum(data: Data, dimension: int) -> Erratum:
    oracle, of_basis = algorithms.erratum_oracle(data, dimension)
    trace = algorithms.multiplicative_weights(oracle, len(data.moments.labels), 1.0, 10)
    basis = np.linalg.eigh(data.moments.pooled_covariance())[1][:, ::-1][:, :dimension]
    return Erratum(dimension, of_basis(basis), float(trace.values[-1]))
