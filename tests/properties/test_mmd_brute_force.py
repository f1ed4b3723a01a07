"""MMDFairPCA in two and three dimensions, where all projections can be tried one by one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.exceptions import ConvergenceWarning
from tests.properties.data import KINDS, fitted, make_rows

from fairpca import MMDFairPCA


def fit(X, groups, y=None, *, d=1, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MMDFairPCA(d, bandwidth="median", **options).fit(X, y, sensitive_features=groups)


def cells_of(labels, weights=1.0):
    """One column of weights per set of rows, each summing to one."""
    cells = ((labels[:, None] == np.unique(labels)).T * weights).T
    return cells / cells.sum(axis=0)


def largest_mmd2(X, cells, pairs, sigmas, basis):
    scores = X @ basis
    squares = ((scores[:, None] - scores[None]) ** 2).sum(axis=-1)
    kernel = np.mean([np.exp(-squares / (2 * sigma**2)) for sigma in np.atleast_1d(sigmas)], axis=0)
    means = cells.T @ kernel @ cells
    return max(means[a, a] + means[b, b] - 2 * means[a, b] for a, b in pairs)


def several_pairs(seed):
    """90 rows of two features in three or four groups, or in two groups with two labels."""
    rng = np.random.default_rng(seed)
    odds = seed % 3 == 2
    k = 2 if odds else 3 + (seed // 3) % 2
    groups, y = rng.integers(0, k, 90), rng.integers(0, 2, 90) if odds else None
    X = rng.normal(size=(90, 2)) * [2, 1]
    for a in range(k):
        mixing = np.eye(2) if seed % 3 == 0 else rng.normal(size=(2, 2))
        X[groups == a] = X[groups == a] @ mixing + rng.normal(size=2)
    if not odds:
        return X, groups, y, cells_of(groups), [(a, b) for a in range(k) for b in range(a)]
    labels = groups + 2 * y
    for cell in range(4):
        X[labels == cell] += 0.8 * rng.normal(size=2)
    return X, groups, y, cells_of(labels), [(0, 1), (2, 3)]


def line_at(angle):
    return np.array([np.cos(angle), np.sin(angle)])


def smallest_value(function, angles, values):
    """The smallest value over all angles; the best points of a grid are refined, as valleys may be narrow."""
    step = angles[1] - angles[0]
    around = angles[np.argsort(values)[:5]]
    found = [minimize_scalar(function, bounds=(a - step, a + step), method="bounded").fun for a in around]
    return min(values.min(), *found)


def test_the_largest_of_several_pairs(n_cases, counts):
    """No tolerance two per cent above the smallest possible is missed, and none below is claimed."""
    angles = np.linspace(0, np.pi, 1000, endpoint=False)
    lines = np.stack([line_at(angle) for angle in angles])
    for seed in range(n_cases):
        X, groups, y, cells, pairs = several_pairs(seed)
        options = {} if y is None else {"notion": "equalized_odds"}
        sigma = fit(X, groups, y, tolerance=10.0, **options).bandwidth_

        def value(angle, X=X, cells=cells, pairs=pairs, sigma=sigma):
            return largest_mmd2(X, cells, pairs, sigma, line_at(angle)[:, None])

        values = np.array([value(angle) for angle in angles])
        smallest = smallest_value(value, angles, values)
        covariance = np.cov(X.T, bias=True)
        shares = np.einsum("ij,jk,ik->i", lines, covariance, lines) / np.trace(covariance)
        assert fit(X, groups, y, tolerance=1.02 * smallest, **options).converged_, seed
        tolerance = 2.0 * smallest
        pca = fit(X, groups, y, tolerance=tolerance, **options)
        assert pca.converged_, seed
        assert pca.explained_variance_ratio_.sum() >= shares[values <= tolerance].max() - 1e-2, seed
        below = fit(X, groups, y, tolerance=0.5 * smallest, **options)
        assert not below.converged_, seed
        assert below.mmd2_ == pytest.approx(smallest, rel=2e-3), seed
        counts["MMDFairPCA"] += 4


def deficient(seed):
    """80 rows of two or three features that vary in fewer directions; a number of components; a share of MMD^2."""
    rng = np.random.default_rng(seed)
    p = 2 if seed % 4 == 0 else 3
    groups, kind = rng.integers(0, 2, 80), rng.integers(4)
    rank = p - 1 if kind else 1
    Z = rng.normal(size=(80, rank))
    Z[groups == 1] = Z[groups == 1] * rng.uniform(1, 2) + rng.normal(size=rank)
    if kind == 0:
        X = np.c_[np.sign(Z - 0.3), np.ones((80, p - 1))]
    elif kind == 1:
        X = Z @ rng.normal(size=(rank, p))
    elif kind == 2:
        X = np.c_[Z, Z[:, :1]]
    else:
        X = np.c_[np.sign(Z), -np.sign(Z[:, :1])]
    return X, groups, 1 + (p == 3 and seed % 3 == 0), rng.choice([0.02, 0.1, 0.3, 0.6])


def frame_of(vector, d):
    """The line of a vector or, for d = 2, the plane at right angles to it."""
    vector = vector / np.linalg.norm(vector)
    return vector[:, None] if d == 1 else np.linalg.svd(vector[:, None])[0][:, 1:]


def directions(p, count=800):
    index = np.arange(count) + 0.5
    if p == 2:
        return np.stack([np.cos(np.pi * index / count), np.sin(np.pi * index / count)], axis=1)
    turn, height = np.pi * (1 + 5**0.5) * index, index / count
    radius = np.sqrt(1 - height**2)
    return np.stack([radius * np.cos(turn), radius * np.sin(turn), height], axis=1)


def best_within(share, violation, vectors):
    """The largest share without violation, minus infinity if there is none.

    The best of the given vectors, and of searches by SLSQP from three of them.
    """
    shares, violations = np.array([share(v) for v in vectors]), np.array([violation(v) for v in vectors])
    best = shares[violations <= 0].max(initial=-np.inf)
    constraints = [
        {"type": "ineq", "fun": lambda v: -violation(v) - 1e-6},
        {"type": "eq", "fun": lambda v: v @ v - 1},
    ]
    for start in vectors[np.argsort(np.where(violations <= 0.3, -shares, 9.0))[:3]]:
        found = minimize(lambda v: -share(v), start, constraints=constraints, method="SLSQP", options={"maxiter": 60})
        if np.isfinite(found.x).all() and violation(found.x) <= 0:
            best = max(best, share(found.x))
    return best


def test_rows_that_vary_in_few_directions(n_cases, counts):
    """Null directions are saddle points of variance and constraint; a search must not end there.

    In case 141 ordinary PCA is near: a search that jumped there is not lost, or the poorer of two regions remains. In
    cases 38 and 97 multipliers are so large that rounding hides the gradient: refinement goes on all the same.
    """
    for seed in sorted({*range(2 * n_cases), 38, 97, 141}):
        X, groups, d, level = deficient(seed)
        plain = fit(X, groups, d=d, tolerance=10.0)
        tolerance = level * plain.mmd2_
        if tolerance < 1e-6:
            continue
        pca = fit(X, groups, d=d, tolerance=tolerance)
        covariance, cells = np.cov(X.T, bias=True), cells_of(groups)

        def share(vector, d=d, covariance=covariance):
            basis = frame_of(vector, d)
            return np.trace(basis.T @ covariance @ basis) / np.trace(covariance)

        def violation(vector, X=X, cells=cells, sigma=plain.bandwidth_, tolerance=tolerance, d=d):
            return largest_mmd2(X, cells, [(0, 1)], sigma, frame_of(vector, d)) / tolerance - 1

        reference = best_within(share, violation, directions(X.shape[1]))
        assert pca.converged_ or reference == -np.inf, seed
        assert pca.explained_variance_ratio_.sum() >= reference - 5e-5, seed
        counts["MMDFairPCA"] += 2


NARROW = [
    # One group's rows are all the same; the smallest value lies a tenth of a radian from a poorer minimum.
    {"seed": 3770571, "kind": "constant group", "k": 3, "d": 1, "weighting": "fractions"},
    {"seed": 4294967295, "kind": "constant group", "k": 3, "d": 2, "weighting": "none"},
    # A valley so narrow that two hundred random frames miss it.
    {"seed": 1254, "kind": "constant group", "k": 3, "d": 2, "weighting": "fractions"},
    {"seed": 6030179, "kind": "few directions", "k": 2, "d": 2, "weighting": "integers"},
    # All three pairs are equal at the smallest value; a norm in which the others count leads away from it.
    {"seed": 2007055256, "kind": "normal", "k": 3, "d": 2, "weighting": "none"},
    # Frames that lead to the smallest value are among the worst to begin with.
    {"seed": 651199537, "kind": "constant column", "k": 3, "d": 2, "weighting": "integers"},
    # A solution refined up to the tolerance of 1e-9 was beyond it once it was computed again, by rounding.
    {"seed": 535648839, "kind": "few directions", "k": 2, "d": 1, "weighting": "fractions"},
]


def check_smallest_value(case):
    """Where no projection is within the tolerance the smallest MMD^2 is returned; all directions are tried here."""
    data = make_rows(**case, p=3, n_rows=24, origin=0.0, exponent=0)
    model = fitted(MMDFairPCA(data.d, tolerance=1e-9), data)
    labels = np.unique(data.groups)
    pairs = [(a, b) for a in range(len(labels)) for b in range(a)]
    cells, centred = cells_of(data.groups, data.counted), data.X - data.X.mean(axis=0)

    def value(vector):
        return largest_mmd2(centred, cells, pairs, model.bandwidth_, frame_of(vector, data.d))

    vectors = directions(3, 4000)
    values = np.array([value(vector) for vector in vectors])
    found = [minimize(value, vector, method="Nelder-Mead").fun for vector in vectors[np.argsort(values)[:10]]]
    here = largest_mmd2(centred, cells, pairs, model.bandwidth_, model.components_.T)
    assert model.mmd2_ == pytest.approx(here, abs=1e-13), case
    assert model.converged_ == (min(found) <= 1e-9), case
    assert model.converged_ or model.mmd2_ == pytest.approx(min(found), rel=2e-3), case


@pytest.mark.parametrize("case", NARROW, ids=lambda case: case["kind"])
def test_the_smallest_value_of_narrow_kernels(case):
    """A few rows and a kernel of an eighth of the median distance make many narrow valleys."""
    check_smallest_value(case)


def test_the_smallest_value_of_random_rows(n_cases, counts):
    for seed in range(n_cases):
        rng = np.random.default_rng(seed)
        check_smallest_value({
            "seed": int(rng.integers(2**31)), "kind": str(rng.choice(KINDS)), "k": int(rng.integers(2, 4)),
            "d": int(rng.integers(1, 3)), "weighting": str(rng.choice(["none", "fractions", "integers"])),
        })  # fmt: skip
        counts["MMDFairPCA"] += 1


def test_a_constant_column_is_not_the_answer():
    rng = np.random.default_rng(0)
    groups = np.arange(120) % 2
    X = np.c_[np.sign(rng.normal(size=120) + groups - 0.8), np.ones(120)]
    pca = fit(X, groups, tolerance=0.1)
    assert pca.mmd2_ <= 0.1
    sigma, cells = pca.bandwidth_, cells_of(groups)
    angle = 0.5 * np.pi * np.linspace(0, 1, 2000)
    feasible = [
        np.cos(t) ** 2
        for t in angle
        if largest_mmd2(X, cells, [(0, 1)], sigma, np.array([[np.cos(t)], [np.sin(t)]])) <= 0.1
    ]
    assert pca.explained_variance_ratio_.sum() >= max(feasible) - 1e-3


@pytest.mark.filterwarnings("ignore:tolerance=1e-08 is below:UserWarning")
@pytest.mark.parametrize("seed", [0, 3])
def test_repms_ends_by_its_own_count_where_the_tolerance_is_out_of_reach(seed):
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(100, 2)), np.repeat([0, 1], 50)
    X[groups == 1] *= 1 + seed % 3
    X[groups == 1] += seed % 2
    model = MMDFairPCA(1, tolerance=1e-8, bandwidth="median", solver="repms")
    with pytest.warns(ConvergenceWarning, match="after 100 of max_iter=100 penalty steps"):
        model.fit(X, sensitive_features=groups)
    assert model.n_iter_ == 100
    assert model.n_oracle_calls_ < 5000  # rounding at a penalty of 1e10 cost hundreds of thousands
