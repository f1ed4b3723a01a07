"""Options together, rows carried in every way: objective and bound against formulas of our own and a plain descent."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from tests.properties.data import best_captured, captured, frame, lowest_found, rows, statistics

from fairpca import AnchorPCA, FairPCA, ParityPCA, RobustFairPCA
from fairpca.moments import GroupMoments, group_moments

#: float32 loses the digits of rows far from zero.
NEAR = (0.0, 10.0)
CARRIERS = ("array", "columns in memory", "CSR", "float32", "chunks", "bytes")


def carried(data, carrier):
    """The rows as float32 would store them, where they are carried so."""
    return dataclasses.replace(data, X=data.X.astype(np.float32).astype(float)) if carrier == "float32" else data


def fit(estimator, data, carrier):
    weights = data.weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if carrier in ("chunks", "bytes"):
            order = np.random.default_rng(0).permutation(len(data.X))
            parts = [
                (data.X[part], data.groups[part], None if weights is None else weights[part])
                for part in np.array_split(order, 3)
            ]
            if carrier == "chunks":
                for X, groups, weight in parts:
                    estimator.partial_fit(X, sensitive_features=groups, sample_weight=weight)
                assert estimator.components_.size  # solved here, where its warnings are ignored
                return estimator
            sites = [group_moments(X, sensitive_features=s, sample_weight=w).to_bytes() for X, s, w in parts]
            first, second, third = map(GroupMoments.from_bytes, sites)
            return estimator.fit_moments(third.merge(first).merge(second))
        X = {
            "array": np.ascontiguousarray, "columns in memory": np.asfortranarray, "CSR": sparse.csr_array,
            "float32": np.float32,
        }[carrier](data.X)  # fmt: skip
        return estimator.fit(X, sensitive_features=data.groups, sample_weight=weights)


def check(model, value, data, slack):
    """The objective is that of the components; nothing found is below the bound, nor below a closed gap."""
    basis, rng = model.components_.T, np.random.default_rng(0)
    assert model.objective_ == pytest.approx(value(basis), abs=slack)
    assert model.lower_bound_ <= model.objective_
    starts = [basis, *(frame(rng, *basis.shape) for _ in range(3))]
    lowest = lowest_found(value, starts, rng)
    assert lowest >= model.lower_bound_ - slack
    if model.converged_:
        assert lowest >= model.objective_ - slack


def prepared(data, carrier, center, relative):
    """Rows, second moments, what they are divided by, and what rounding may change of a value."""
    data = carried(data, carrier)
    stats = statistics(data, center)
    assume(stats.total > 1e6 * stats.slack)
    assume(not relative or stats.totals.min() > 1e6 * stats.slack)
    scales = stats.totals if relative else np.ones(len(stats.totals))
    unit = 1.0 if relative else stats.total
    return data, stats, scales, 1e-8 * unit * stats.enlarged.max() + 60 * stats.slack / scales.min()


@given(
    data=rows(origins=NEAR),
    carrier=st.sampled_from(CARRIERS),
    criterion=st.sampled_from(["loss", "error", "variance", "mean"]),
    center=st.sampled_from(["pooled", "group"]),
    relative=st.booleans(),
    nested=st.booleans(),
)
def test_balanced_quality(data, carrier, criterion, center, relative, nested, counts):
    assume(not nested or criterion == "loss")
    data, stats, scales, slack = prepared(data, carrier, center, relative)
    model = fit(FairPCA(data.d, criterion=criterion, center=center, relative=relative, nested=nested), data, carrier)
    counts["FairPCA, combined"] += 1
    matrices = stats.seconds / scales[:, None, None]
    totals = np.einsum("aii->a", matrices)
    kept_at_best = {"loss": best_captured(matrices, data.d), "variance": np.zeros(len(totals))}.get(criterion, totals)
    over_groups = np.mean if criterion == "mean" else np.max

    def value(basis):
        return float(over_groups(kept_at_best - captured(matrices, basis)))

    if nested:  # the best extension of its own prefixes: only the bound is that of any projection
        assert model.objective_ == pytest.approx(value(model.components_.T), abs=slack)
        assert lowest_found(value, [model.components_.T], np.random.default_rng(0)) >= model.lower_bound_ - slack
    else:
        check(model, value, data, slack)


@given(
    data=rows(max_groups=3, origins=NEAR),
    carrier=st.sampled_from(CARRIERS),
    center=st.sampled_from(["pooled", "group"]),
    relative=st.booleans(),
    penalty=st.sampled_from([0.0, 0.7, 5.0]),
)
def test_robust_balance(data, carrier, center, relative, penalty, counts):
    """With radius 0: mean error plus penalty times the largest difference, weighted by shares of rows."""
    data, stats, scales, slack = prepared(data, carrier, center, relative)
    model = fit(RobustFairPCA(data.d, radius=0.0, penalty=penalty, center=center, relative=relative), data, carrier)
    counts["RobustFairPCA, combined"] += 1
    matrices = stats.seconds / scales[:, None, None]
    totals = np.einsum("aii->a", matrices)

    def value(basis):
        errors = np.maximum(totals - captured(matrices, basis), 0.0)
        return float(stats.shares @ errors + penalty * np.ptp(errors))

    check(model, value, data, (1 + penalty) * slack * (10 if len(stats.shares) > 2 else 1))


@given(
    data=rows(max_groups=3, origins=NEAR),
    carrier=st.sampled_from(CARRIERS),
    penalty=st.sampled_from([0.0, 0.3, np.inf]),
)
def test_agreement_and_parity(data, carrier, penalty, counts):
    """AnchorPCA by its definition; ParityPCA is ordinary PCA of the directions with equal group means."""
    data, stats, _, slack = prepared(data, carrier, "group", False)
    model = fit(AnchorPCA(data.d, penalty=penalty), data, carrier)
    counts["AnchorPCA, combined"] += 1
    values, vectors = np.linalg.eigh(stats.covariances)
    if (values[:, ::-1][:, data.d - 1] > 1e-3 * stats.total).all() and (
        data.d == data.X.shape[1] or (np.diff(values, axis=1)[:, -data.d] > 1e-3 * stats.total).all()
    ):  # otherwise the groups' own subspaces are not determined
        own = np.mean([one[:, ::-1][:, : data.d] @ one[:, ::-1][:, : data.d].T for one in vectors], axis=0)
        within = stats.covariances.mean(axis=0)
        target = own if penalty == np.inf else within + 2 * len(vectors) * penalty * own
        basis = model.components_.T
        tolerance = 1e-6 * (1 if penalty == np.inf else stats.total + penalty)
        assert model.objective_ == pytest.approx(-float(captured(target, basis)), abs=tolerance)
        assert model.lower_bound_ == pytest.approx(-float(best_captured(target, data.d)), abs=tolerance)
    _, lengths, directions = np.linalg.svd((stats.means - stats.means.mean(axis=0)) / np.sqrt(stats.total))
    differ = lengths > 1e-4
    free = directions[differ.sum() :]
    if (lengths[~differ] > 1e-13).any() or len(free) < data.d:
        return  # rounding decides, or there are too few directions
    parity = fit(ParityPCA(data.d), data, carrier)
    counts["ParityPCA, combined"] += 1
    expected = -float(best_captured(free @ stats.pooled @ free.T, data.d))
    assert parity.objective_ == pytest.approx(expected, abs=10 * slack)
