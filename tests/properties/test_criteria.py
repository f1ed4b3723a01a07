"""Properties of relative criteria, nested components and shares, on every kind of data set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.properties.data import best_captured, captured, fitted, frame, lowest_found, make_rows, rows, statistics

from fairpca import FairPCA, RobustFairPCA


@given(
    data=rows(), criterion=st.sampled_from(["loss", "error", "variance"]), center=st.sampled_from(["pooled", "group"])
)
def test_relative_criteria(data, criterion, center, counts):
    """Objective and bound are those of M_a / tr M_a, computed here from the rows."""
    stats = statistics(data, center)
    totals = stats.totals
    assume(totals.min() > 1e6 * stats.slack)
    model = fitted(FairPCA(data.d, criterion=criterion, center=center, relative=True), data)
    counts["FairPCA relative"] += 1
    matrices = stats.seconds / totals[:, None, None]
    reference = {
        "loss": best_captured(matrices, data.d), "error": np.ones(len(totals)), "variance": np.zeros(len(totals)),
    }[criterion]  # fmt: skip

    def value(basis):
        return float((reference - captured(matrices, basis)).max())

    slack = 1e-8 + 50 * stats.slack / totals.min()
    basis = model.components_.T
    assert model.objective_ == pytest.approx(value(basis), abs=slack)
    assert model.lower_bound_ <= model.objective_
    assert np.allclose(model.group_variances_, totals, atol=8 * stats.slack * totals.max() / stats.total)
    rng = np.random.default_rng(0)
    lowest = lowest_found(value, [basis, frame(rng, *basis.shape)], rng)
    assert lowest >= model.lower_bound_ - slack
    if model.converged_:
        assert lowest >= model.objective_ - slack


@given(data=rows(max_groups=2), factor=st.sampled_from([1e-3, 0.2, 7.0, 1e3]), robust=st.booleans())
def test_relative_is_invariant_to_the_scale_of_one_group(data, factor, robust, counts):
    """Scaling the rows of one group about its own mean changes nothing, if moments are about the group means."""
    stats = statistics(data, "group")
    totals = stats.totals
    assume(data.origin <= 10)  # far from the origin, rows scaled down are lost in rounding
    assume(totals.min() > 1e5 * stats.slack)
    first = data.labels[0]
    X = data.X.copy()
    mean = np.average(X[data.groups == first], axis=0, weights=data.counted[data.groups == first])
    X[data.groups == first] = mean + factor * (X[data.groups == first] - mean)
    scaled = type(data)(X, data.groups, data.weights, data.d, data.kind, data.origin)
    make = RobustFairPCA if robust else FairPCA
    before, after = (fitted(make(data.d, center="group", relative=True), one) for one in (data, scaled))
    counts[f"{make.__name__} relative"] += 2
    assert after.objective_ == pytest.approx(before.objective_, abs=1e-6)
    assert after.lower_bound_ == pytest.approx(before.lower_bound_, abs=1e-6)


#: Rounding makes a system of equations of Newton's method singular.
ALIKE = make_rows(18492, "constant column", 3, 4, 4, n_rows=40, origin=0.0, exponent=-8, weighting="fractions")


@example(data=ALIKE, relative=True)
@given(data=rows(), relative=st.booleans())
def test_nested_components(data, relative, counts):
    """Prefixes have the stated losses, none is below the joint bound, and each is the best extension found."""
    stats = statistics(data)
    totals = stats.totals
    assume(not relative or totals.min() > 1e6 * stats.slack)
    model = fitted(FairPCA(data.d, nested=True, relative=relative), data)
    counts["FairPCA nested"] += 1
    scales = totals if relative else np.ones_like(totals)
    matrices = stats.seconds / scales[:, None, None]
    unit = 1.0 if relative else stats.total
    slack = 1e-8 * unit + 50 * stats.slack * stats.enlarged.max() * (1 / totals.min() if relative else 1.0)
    components, rng = model.components_, np.random.default_rng(0)
    assert np.allclose(components @ components.T, np.eye(data.d), atol=1e-10)
    assert (model.prefix_lower_bounds_ <= model.prefix_objectives_).all()
    assert model.objective_ == pytest.approx(model.prefix_objectives_[-1], abs=1e-12 * unit)
    for j in range(1, data.d + 1):
        best = best_captured(matrices, j)

        def loss(basis, best=best):
            return float((best - captured(matrices, basis)).max())

        prefix = components[:j].T
        assert model.prefix_objectives_[j - 1] == pytest.approx(loss(prefix), abs=slack)
        assert lowest_found(loss, [prefix], rng) >= model.prefix_lower_bounds_[j - 1] - slack
        if model.converged_:
            earlier = components[: j - 1].T
            tried = rng.normal(size=(data.X.shape[1], 200))
            tried -= earlier @ (earlier.T @ tried)
            lengths = np.linalg.norm(tried, axis=0)
            for v in (tried / np.where(lengths > 0, lengths, 1.0)).T[lengths > 1e-6]:
                assert loss(np.column_stack([earlier, v])) >= model.prefix_objectives_[j - 1] - slack


@given(
    data=rows(max_groups=3, kinds=("normal", "ties", "few directions", "duplicate columns")),
    share=st.sampled_from([0.3, 0.6, 0.9]),
    criterion=st.sampled_from(["loss", "error", "variance", "nash"]),
    nested=st.booleans(),
)
def test_a_share_takes_the_fewest_components(data, share, criterion, nested, counts):
    """Every group keeps the share with that many components, and with none of the smaller numbers."""
    stats = statistics(data)
    totals = stats.totals
    assume(best_captured(stats.seconds, 1).min() > 1e6 * stats.slack)
    options = {"criterion": "loss", "nested": True} if nested else {"criterion": criterion}
    model = fitted(FairPCA(share, **options), data)
    counts["FairPCA share"] += 1

    def kept(one):
        return float((captured(stats.seconds, one.components_.T) / totals).min())

    slack = 1e-9 + 50 * stats.slack / totals.min()
    assert kept(model) >= share - slack
    for d in range(1, model.n_components_):
        assert kept(fitted(FairPCA(d, **options), data)) < share + slack
