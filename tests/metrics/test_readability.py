"""Readability: an AUC that is right, an interval that covers it, a level that chance keeps to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score

from fairpca import ParityPCA
from fairpca.datasets import load_german_credit
from fairpca.metrics import readability
from fairpca.metrics._reading import Reader, auc_interval, random_aucs
from reproductions.datasets import load_splits


def reader(scores, first=0, second=1):
    return Reader("boosting", (first, second), np.asarray(scores, dtype=float))


def test_auc_is_that_of_scikit_learn_with_ties(rng):
    scores, units = rng.integers(0, 6, 80), np.arange(80)
    for _ in range(10):
        codes = rng.permutation(units % 2)
        assert reader(scores).judge(codes, units)[0] == pytest.approx(roc_auc_score(codes, scores), abs=1e-12)


def test_pairs_and_the_rest_of_several_groups(rng):
    scores, codes, units = rng.normal(size=90), np.arange(90) % 3, np.arange(90)
    pair = codes != 2
    assert reader(scores).judge(codes, units)[0] == pytest.approx(roc_auc_score(codes[pair], scores[pair]))
    assert reader(scores, 0, None).judge(codes, units)[0] == pytest.approx(roc_auc_score(codes != 0, scores))


@pytest.mark.parametrize("levels", [2, 7, 1000])
def test_random_groups_are_the_same_for_all_scores_and_their_auc_is_as_of_the_given_ones(rng, levels):
    """A score that is the position of a row shows which rows were drawn, and so which AUC other scores have."""
    codes, units, scores = np.arange(60) % 3, np.arange(60), rng.integers(0, levels, 60).astype(float)
    rows = [reader(units == i) for i in units] + [reader(units == i, 0, None) for i in units]
    drawn = random_aucs([*rows, reader(scores), reader(scores, 0, None)], codes, units, seed=3)
    assert drawn.shape == (122, 199)
    for draw in drawn.T[:20]:
        # The AUC of an indicator is above 1/2 if its row is in the second group, and below if it is in the first.
        drawn_codes = np.where(draw[:60] < 0.5, 0, np.where(draw[:60] > 0.5, 1, 2))
        assert sorted(drawn_codes) == sorted(codes)
        assert ((draw[60:120] < 0.5) == (drawn_codes == 0)).all()
        assert draw[120] == pytest.approx(reader(scores).judge(drawn_codes, units)[0], abs=1e-12)
        assert draw[121] == pytest.approx(reader(scores, 0, None).judge(drawn_codes, units)[0], abs=1e-12)


@pytest.mark.parametrize(("shift", "size"), [(0.0, 40), (0.8, 40), (2.5, 60), (4.0, 60)])
def test_interval_covers_the_true_auc(rng, shift, size):
    truth, codes, units = norm.cdf(shift / np.sqrt(2)), np.repeat([0, 1], [size, size // 2]), np.arange(3 * size // 2)
    covered = 0
    for _ in range(400):
        found = reader(rng.normal(size=len(codes)) + shift * codes).judge(codes, units)
        auc, low, high = auc_interval(*found, 0.95)
        assert 0 <= low <= auc <= high <= 1
        covered += low <= truth <= high
    assert 0.92 <= covered / 400 <= 0.995


def test_rows_of_a_cluster_count_once(rng):
    """Six rows of a person that say the same: the interval that ignores it covers too rarely."""
    people, codes = np.repeat(np.arange(60), 6), np.repeat(np.arange(60) % 2, 6)
    truth, covered = norm.cdf(0.8 / np.sqrt(2)), np.zeros(2)
    for _ in range(300):
        scores = np.repeat(rng.normal(size=60), 6) + 0.8 * codes
        for i, units in enumerate((people, np.arange(360))):
            _, low, high = auc_interval(*reader(scores).judge(codes, units), 0.95)
            covered[i] += low <= truth <= high
    assert covered[0] / 300 >= 0.9
    assert covered[1] / 300 < 0.75


def test_separated_groups_have_an_interval_all_the_same():
    codes = np.repeat([0, 1], 50)
    auc, low, high = auc_interval(*reader(codes).judge(codes, np.arange(100)), 0.95)
    assert auc == high == 1
    assert low == pytest.approx(0.961, abs=2e-3)  # Newcombe (2006), method 5, 50 and 50


def test_random_groups_stay_within_the_level():
    """On the scores of German credit, in at least 90 of 100 divisions at random."""
    X = load_german_credit().data
    scores = PCA(5).fit_transform(X - X.mean(axis=0))[:400]
    rng = np.random.default_rng(0)
    codes = np.arange(400) % 3 == 0
    found = [readability(scores, sensitive_features=rng.permutation(codes), random_state=i) for i in range(100)]
    assert sum(not one.readable for one in found) >= 90
    assert sum(one.low <= 0.5 <= one.high for one in found) >= 88


def test_random_people_stay_within_the_level_only_if_they_are_told():
    rng = np.random.default_rng(1)
    within = np.zeros(2)
    for i in range(30):
        people = np.repeat(np.arange(60), 8)
        Z = rng.normal(size=(60, 2))[people] + 0.01 * rng.normal(size=(480, 2))
        groups = rng.permutation(np.arange(60) % 2)[people]
        for j, clusters in enumerate((people, None)):
            found = readability(Z, sensitive_features=groups, clusters=clusters, family="rbf", random_state=i)
            within[j] += not found.readable
    assert within[0] >= 25
    assert within[1] <= 5


@pytest.fixture
def spread(rng):
    """Two groups with equal means and different spread."""
    groups = np.repeat(["a", "b"], [300, 200])
    return rng.normal(size=(500, 2)) * np.where(groups == "b", 3.0, 1.0)[:, None], groups


def test_the_division_is_reproducible_and_train_is_used(spread, rng):
    Z, groups = spread
    assert readability(Z, sensitive_features=groups) == readability(Z, sensitive_features=groups)
    assert readability(Z, sensitive_features=groups).n_rows == 250
    mirrored = (Z, np.where(groups == "a", "b", "a"))
    found = readability(Z, sensitive_features=groups, train=mirrored)
    assert found.n_rows == 500
    assert found.auc < 0.2
    assert not found.readable


def test_all_families_and_who_reads_most(spread):
    Z, groups = spread
    found = readability(Z, sensitive_features=groups, family="all")
    assert {one.by for one in found.readings} == {"boosting", "linear", "rbf"}
    assert found.auc == max(one.auc for one in found.readings)
    assert found.high == max(one.high for one in found.readings)
    assert found.low <= max(one.low for one in found.readings)
    assert found.by in ("boosting", "rbf")
    assert found.readable
    # A half-space about which the means agree sees something too: the one that cuts off a tail.
    linear = next(one for one in found.readings if one.by == "linear")
    assert 0.5 < linear.auc < found.auc


def test_pairs_of_few_groups_and_each_against_the_rest_of_many(rng):
    groups = np.arange(600) % 3
    Z = rng.normal(size=(600, 2)) + 3.0 * (groups == 2)[:, None]
    found = readability(Z, sensitive_features=groups, family="rbf")
    assert [one.groups for one in found.readings] == [(0, 1), (0, 2), (1, 2)]
    assert 2 in found.groups
    many = readability(Z, sensitive_features=np.arange(600) % 6, family="rbf")
    assert [one.groups for one in many.readings] == [(a, "rest") for a in range(6)]


def test_the_words_and_the_table(spread):
    pd = pytest.importorskip("pandas")
    found = readability(spread[0], sensitive_features=spread[1], family="all")
    assert f"AUC {found.auc:.3f} ({found.low:.3f} to {found.high:.3f}) on 250 held-out rows" in repr(found)
    assert "a from b" in repr(found)
    assert "more than random groups" in repr(found)
    table = found.to_frame()
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == ["by", "group", "against", "auc", "low", "high"]
    assert table.auc.max() == found.auc


def test_rounding_is_not_read(rng):
    groups = np.repeat([0, 1], 200)
    Z = np.column_stack([rng.normal(size=400), 1e-16 * groups])
    assert not readability(Z, sensitive_features=groups).readable
    atoms = rng.integers(0, 4, 400) + 1e-14 * groups  # equal values, up to their last digits
    assert readability(atoms[:, None].astype(float), sensitive_features=groups).auc < 0.65
    constant = readability(np.ones((400, 2)), sensitive_features=groups)
    assert (constant.auc, constant.readable) == (0.5, False)


def test_parity_of_means_is_readable_on_discrete_data(shared_data):
    """COMPAS: equal means, yet boosting reads the group nearly as well as from ordinary PCA."""
    split = next(load_splits(shared_data / "lee2022" / "datasets" / "COMPAS", splits=[0]))
    with pytest.warns(UserWarning, match="sensitive feature"):
        pca = ParityPCA(2).fit(split.X_train, sensitive_features=split.sensitive_train)
    train = (pca.transform(split.X_train), split.sensitive_train)
    found = readability(pca.transform(split.X_test), sensitive_features=split.sensitive_test, train=train)
    assert found.readable
    assert found.low > 0.9


def test_bad_input(spread):
    Z, groups = spread
    with pytest.raises(ValueError, match="family='tree' is unknown"):
        readability(Z, sensitive_features=groups, family="tree")
    with pytest.raises(ValueError, match=r"clusters has shape \(3,\), but X has 500 rows"):
        readability(Z, sensitive_features=groups, clusters=[1, 2, 3])
    with pytest.raises(ValueError, match=r"cluster .*0.* belong to several groups"):
        readability(Z, sensitive_features=groups, clusters=np.zeros(500, dtype=int))
    with pytest.raises(ValueError, match="single row or cluster"):
        readability(Z, sensitive_features=groups, clusters=np.where(groups == "a", 0, np.arange(500) + 1))
    with pytest.raises(ValueError, match="train contains the groups"):
        readability(Z, sensitive_features=groups, train=(Z, np.where(groups == "a", "a", "c")))
