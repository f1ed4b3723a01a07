"""The robust objective: its closed form, its pieces, its slopes."""

import itertools

import numpy as np
import pytest

from fairpca.problems.robust import RobustGap, group_radii


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def random_problem(rng, k, *, penalty=None):
    shares = rng.dirichlet(np.full(k, 2.0))
    radii = rng.uniform(0, 0.5, k)
    return RobustGap(shares, radii, rng.uniform(0, 3) if penalty is None else penalty)


def bures(first, second):
    """The divergence of the ambiguity set, for distributions with zero mean."""
    values, vectors = np.linalg.eigh(second)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    cross = np.linalg.eigvalsh(root @ first @ root)
    return np.trace(first) + np.trace(second) - 2 * np.sqrt(np.maximum(cross, 0)).sum()


@pytest.mark.parametrize("coefficient", [1.3, -0.7])
@pytest.mark.parametrize("radius", [0.05, 3.0])
def test_worst_case_of_one_group_is_attained_and_never_exceeded(rng, coefficient, radius):
    factor = rng.standard_normal((4, 4))
    moment = factor @ factor.T / 4
    outside = np.linalg.qr(rng.standard_normal((4, 2)))[0]
    project = outside @ outside.T
    error = np.trace(project @ moment)
    # One group with share u: its single piece is u times the worst case.
    claimed = RobustGap(np.array([coefficient]), np.array([radius]), 0.0).value(np.array([error]))
    shift = np.sqrt(radius / error) * np.sign(coefficient)
    transport = np.eye(4) + max(shift, -1.0) * project
    moved = transport @ moment @ transport
    assert bures(moment, moved) <= radius + 1e-9
    assert coefficient * np.trace(project @ moved) == pytest.approx(claimed, abs=1e-9)
    for _ in range(300):
        noise = rng.standard_normal((4, 4)) * rng.uniform(0, 1)
        other = (np.eye(4) + noise) @ moment @ (np.eye(4) + noise).T
        if bures(moment, other) <= radius:
            assert coefficient * np.trace(project @ other) <= claimed + 1e-9


@pytest.mark.parametrize("k", [2, 3, 4])
def test_value_is_the_largest_pair(rng, k):
    problem = random_problem(rng, k)
    errors = rng.uniform(0, 2, k)
    largest = -np.inf
    for a, b in itertools.permutations(range(k), 2):
        total = 0.0
        for c in range(k):
            u = problem.shares[c] + problem.penalty * ((c == a) - (c == b))
            root, radius = np.sqrt(errors[c]), np.sqrt(problem.radii[c])
            total += u * (root + radius) ** 2 if u >= 0 else u * max(root - radius, 0.0) ** 2
        largest = max(largest, total)
    assert problem.value(errors) == pytest.approx(largest, rel=1e-13)


def test_radius_zero_is_total_error_plus_penalised_gap(rng):
    shares, errors = np.array([0.2, 0.3, 0.5]), rng.uniform(0, 2, 3)
    problem = RobustGap(shares, np.zeros(3), 1.7)
    assert problem.value(errors) == pytest.approx(shares @ errors + 1.7 * np.ptp(errors))


def test_gradients_by_slopes(rng):
    problem = random_problem(rng, 3, penalty=1.2)
    errors, direction, step = rng.uniform(0.2, 2, 3), rng.standard_normal(3), 1e-6
    ahead, behind = (problem.pieces(errors + s * step * direction) for s in (1, -1))
    np.testing.assert_allclose(problem.gradients(errors) @ direction, (ahead - behind) / (2 * step), rtol=1e-6)


def test_pieces_are_concave(rng):
    problem = random_problem(rng, 3)
    for _ in range(100):
        first, second = rng.uniform(0, 1, (2, 3))
        t = rng.uniform()
        between = problem.pieces(t * first + (1 - t) * second)
        assert (between >= t * problem.pieces(first) + (1 - t) * problem.pieces(second) - 1e-12).all()


def test_minorants_lie_below_on_the_box_and_meet_at_its_corners(rng):
    problem = random_problem(rng, 3)
    low = np.array([0.0, 0.1, 0.4])
    high = np.array([0.5, 0.1, 2.0])
    constants, slopes = problem.minorants(low, high)
    for errors in rng.uniform(low, high, (200, 3)):
        assert (constants + slopes @ errors <= problem.pieces(errors) + 1e-12).all()
    np.testing.assert_allclose(constants + slopes @ high, problem.pieces(high), atol=1e-12)


def test_gradients_stay_inside_the_cone(rng):
    """The sweep relies on this: every combination of gradients lies strictly between the two directions."""

    def angle(direction):
        return np.arctan2(direction[1], direction[0])

    for _ in range(500):
        radii = rng.uniform(0, 2, 2) * rng.integers(0, 2, 2)
        penalty = rng.choice([0.0, rng.uniform(0, 1), rng.uniform(0, 100)])
        problem = RobustGap(rng.dirichlet([1, 1]), radii, penalty)
        first, last = (angle(direction) for direction in problem.cone())
        assert -np.pi / 2 < first <= 0
        assert np.pi / 2 <= last < np.pi
        gradients = problem.gradients(rng.uniform(1e-3, 2, 2))
        for t in np.linspace(0, 1, 11):
            assert first < angle(t * gradients[0] + (1 - t) * gradients[-1]) < last


def test_guarded_slopes_are_finite_at_zero_error():
    for radius in (0.1, 1e-12):
        small = RobustGap(np.array([0.5, 0.5]), np.array([radius, 0.0]), 2.0, np.ones(2))
        assert np.isfinite(small.gradients(small.guarded(np.zeros(2)))).all()
    problem = RobustGap(np.array([0.5, 0.5]), np.array([0.1, 0.0]), 2.0)
    assert np.isinf(problem.gradients(np.zeros(2))).any()
    assert np.isfinite(problem.gradients(problem.guarded(np.zeros(2)))).all()


def test_radii_follow_the_group_sizes():
    counts = np.array([25.0, 100.0])
    np.testing.assert_allclose(group_radii(0.5, ["a", "b"], counts), [0.1, 0.05])
    np.testing.assert_allclose(group_radii([0.3, 0.7], ["a", "b"], counts), [0.3, 0.7])
    np.testing.assert_allclose(group_radii({"b": 0.7, "a": 0.3}, ["a", "b"], counts), [0.3, 0.7])


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        ([0.1, 0.2, 0.3], "one radius per group"),
        (-1.0, "not negative"),
        ({"a": 1.0}, "no value"),
        (np.nan, "finite"),
    ],
)
def test_invalid_radii_raise(radius, message):
    with pytest.raises(ValueError, match=message):
        group_radii(radius, ["a", "b"], np.array([4.0, 9.0]))
