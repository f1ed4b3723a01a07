"""The adversary's measure: the best half-space, or the Kolmogorov-Smirnov distance of a trained score."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from fairpca.metrics import adversary_gap
from fairpca.metrics._half_space import _gaps, _searched
from fairpca.metrics.readability import half_space_gaps


def random_gaps(Z, groups, count, **options):
    """With groups at random."""
    rng = np.random.default_rng(1)
    return np.array([adversary_gap(Z, sensitive_features=rng.permutation(groups), **options) for _ in range(count)])


def in_sample(Z, groups, **options):
    """Trained and evaluated on the same rows."""
    return adversary_gap(Z, sensitive_features=groups, train=(Z, groups), **options)


def test_coordinates_that_are_rounding_do_not_count(rng):
    groups = np.repeat([0, 1], 100)
    Z = np.column_stack([rng.normal(size=200), 1e-16 * groups])
    level = [in_sample(Z, rng.permutation(groups)) for _ in range(20)]
    assert in_sample(Z, groups) <= max(level) + 0.1
    assert in_sample(np.column_stack([Z[:, 0], 1e-3 * groups]), groups) == 1
    assert adversary_gap(np.zeros((200, 2)), sensitive_features=groups) == 0


@pytest.fixture
def shifted(rng):
    groups = np.repeat(["a", "b"], [200, 100])
    Z = rng.normal(size=(300, 3))
    Z[200:, 0] += 1.0
    return Z, groups


def test_a_machine_in_sample_and_on_other_rows(shifted, rng):
    Z, groups = shifted
    machine = SVC(class_weight="balanced")
    scaler = StandardScaler().fit(Z)
    machine.fit(scaler.transform(Z), groups)
    scores = machine.decision_function(scaler.transform(Z))
    expected = ks_2samp(scores[groups == "a"], scores[groups == "b"]).statistic
    assert in_sample(Z, groups, family="rbf") == pytest.approx(expected, abs=1e-12)
    new = rng.normal(size=(80, 3))
    new_groups = np.repeat(["b", "a"], 40)
    scores = machine.decision_function(scaler.transform(new))
    expected = ks_2samp(scores[:40], scores[40:]).statistic
    assert adversary_gap(new, sensitive_features=new_groups, family="rbf", train=(Z, groups)) == pytest.approx(
        expected, abs=1e-12
    )


def largest_gap_in_the_plane(Z, groups, count=2000):
    """The supremum over half-spaces, by a grid of directions and the Kolmogorov-Smirnov distance along each."""
    angles = np.linspace(0, np.pi, count, endpoint=False)
    scores = Z @ np.array([np.cos(angles), np.sin(angles)])
    first = groups == groups[0]
    return max(ks_2samp(column[first], column[~first]).statistic for column in scores.T)


@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_the_supremum_over_half_spaces(seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat([0, 1], [120, 80])
    Z = rng.normal(size=(200, 2)) * np.where(groups == 1, 3.0, 1.0)[:, None]
    Z[:, 1] = np.abs(Z[:, 1])  # one-sided, so that equal spreads do not balance
    Z, second = StandardScaler().fit_transform(Z), groups == 1
    found = _gaps(Z, _searched(Z, second, np.random.RandomState(0))[:, None], second)[0]
    largest = largest_gap_in_the_plane(Z, groups)
    assert 0.97 * largest <= found <= largest + 1e-2


def test_equal_means_hide_nothing_from_a_half_space(rng):
    """A machine with a smooth convex loss sees equal means and says 0; the half-space sees the different spread."""
    groups = np.repeat([0, 1], [400, 300])
    Z = rng.exponential(size=(700, 2)) * np.where(groups == 1, 4.0, 1.0)[:, None]
    for a in (0, 1):
        Z[groups == a] -= Z[groups == a].mean(axis=0)
    machine = make_pipeline(StandardScaler(), LinearSVC(class_weight="balanced", dual=False))
    assert in_sample(Z, groups, family=machine) == 0
    half = np.arange(700) % 2 == 0
    gap = adversary_gap(Z[half], sensitive_features=groups[half], train=(Z[~half], groups[~half]))
    levels = random_gaps(Z[half], groups[half], 50, train=(Z[~half], groups[~half]))
    assert gap > 0.3 > levels.max()


def test_the_threshold_is_that_of_the_training_rows(rng):
    """On other rows the rule is what it was: shifted as a whole, they all lie on one side of it."""
    groups = np.repeat([0, 1], 100)
    Z = rng.normal(size=(200, 1)) + 3.0 * groups[:, None]
    assert adversary_gap(Z, sensitive_features=groups, train=(Z, groups)) > 0.8
    assert adversary_gap(Z + 50.0, sensitive_features=groups, train=(Z, groups)) == 0


def test_few_rows_are_not_trusted_to_a_search(rng):
    """Twelve coordinates, one of which matters: held out, the rule is not much worse than along that one."""
    groups = np.repeat([0, 1], 60)
    gaps = {"all": [], "one": []}
    for _ in range(10):
        Z, new = (rng.normal(size=(120, 12)) + 2.0 * np.outer(groups, np.arange(12) == 0) for _ in range(2))
        gaps["all"].append(adversary_gap(new, sensitive_features=groups, train=(Z, groups)))
        gaps["one"].append(adversary_gap(new[:, :1], sensitive_features=groups, train=(Z[:, :1], groups)))
    assert np.mean(gaps["all"]) > np.mean(gaps["one"]) - 0.12


def test_separated_groups_reach_one(shifted):
    Z, groups = shifted
    Z = Z + 20.0 * (groups == "b")[:, None]
    assert adversary_gap(Z, sensitive_features=groups) == 1.0
    assert adversary_gap(Z, sensitive_features=groups, family="rbf") == 1.0


def test_held_out_is_honest_where_in_sample_is_not(rng):
    groups = np.repeat([0, 1], 50)
    Z = rng.normal(size=(100, 30))  # nothing to learn, much to remember
    assert in_sample(Z, groups, family="rbf") > 0.9
    assert adversary_gap(Z, sensitive_features=groups, family="rbf") < 0.5


def test_rings_are_seen_by_the_rbf_family_only(rng):
    angle = rng.uniform(0, 2 * np.pi, 600)
    groups = np.repeat([0, 1], 300)
    radius = np.where(groups == 1, 3.0, 1.0)[:, None]
    Z = radius * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(600, 2))
    assert adversary_gap(Z, sensitive_features=groups, family="rbf") > 0.95
    assert adversary_gap(Z, sensitive_features=groups, family="linear") < 0.6


def test_worst_pair_of_several_groups(shifted, rng):
    Z, groups = shifted
    third = rng.normal(size=(100, 3)) + np.array([4.0, 0.0, 0.0])
    all_Z, all_groups = np.vstack([Z, third]), np.append(groups, np.repeat("c", 100))
    kept = all_groups != "b"
    pair = in_sample(all_Z[kept], all_groups[kept])
    assert in_sample(all_Z, all_groups) == pytest.approx(pair, abs=1e-12)


def test_random_groups_give_the_level_of_chance(shifted):
    Z, groups = shifted
    level = random_gaps(Z, groups, 15)
    assert 0 < level.mean() < 0.15
    assert adversary_gap(Z, sensitive_features=groups) > level.max()
    machine = random_gaps(Z, groups, 40, family="rbf")
    expected = 0.63 * np.sqrt((1 / (0.5 * np.array([200, 100]))).sum())
    assert 0.6 * expected < machine.mean() < 1.5 * expected
    half = slice(0, None, 2)
    options = {"train": (Z[1::2], groups[1::2]), "random_state": 0}
    gap, judged = half_space_gaps(Z[half], sensitive_features=groups[half], clusters=None, **options)
    assert gap == adversary_gap(Z[half], sensitive_features=groups[half], **options)
    # max(0, N) of a difference of shares about one half
    expected = 0.5 * np.sqrt(1 / 100 + 1 / 50) / np.sqrt(2 * np.pi)
    assert judged.mean() == pytest.approx(expected, rel=0.35)


def test_random_groups_of_clusters_reach_more_than_those_of_rows(rng):
    persons = np.repeat(np.arange(50), 6)
    Z, groups = rng.normal(size=(50, 2))[persons], (np.arange(50) % 2)[persons]
    options = {"sensitive_features": groups, "train": (Z, groups), "random_state": 0}
    levels = [np.quantile(half_space_gaps(Z, clusters=one, **options)[1], 0.95) for one in (persons, None)]
    assert levels[0] > 1.5 * levels[1]


def test_a_classifier_of_ones_own(shifted):
    Z, groups = shifted
    scores = GaussianNB().fit(Z, groups).predict_proba(Z)[:, 1]  # it has no decision_function
    expected = ks_2samp(scores[groups == "a"], scores[groups == "b"]).statistic
    found = in_sample(Z, groups, family=GaussianNB())
    assert found == pytest.approx(expected, abs=1e-12)


def test_bad_input(shifted):
    Z, groups = shifted
    with pytest.raises(ValueError, match="family='tree' is unknown"):
        adversary_gap(Z, sensitive_features=groups, family="tree")
    with pytest.raises(ValueError, match="sensitive_features is required"):
        adversary_gap(Z, sensitive_features=None)
    with pytest.raises(ValueError, match="single group"):
        adversary_gap(Z, sensitive_features=np.zeros(300))
    with pytest.raises(ValueError, match="both sets of rows must have the same groups"):
        adversary_gap(Z, sensitive_features=groups, train=(Z, np.where(groups == "a", "a", "c")))
    with pytest.raises(ValueError, match="single row"):
        adversary_gap(Z, sensitive_features=np.arange(300) == 0)


def test_other_columns_are_named(shifted):
    Z, groups = shifted
    with pytest.raises(ValueError, match=f"train has rows with 1 columns, but X has {Z.shape[1]}"):
        adversary_gap(Z, sensitive_features=groups, train=(Z[:, :1], groups))
    with pytest.raises(TypeError, match="train must be a pair"):
        adversary_gap(Z, sensitive_features=groups, train=Z)


def test_every_seed_repeats_itself(rng):
    Z, groups = rng.normal(size=(120, 2)), np.arange(120) % 2
    Z[groups == 1] += 0.4
    for seed in (1, None):
        found = [adversary_gap(Z, sensitive_features=groups, random_state=seed) for _ in range(2)]
        assert found[0] == found[1]
