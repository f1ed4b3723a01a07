"""The reproduction's protocol, and its figures on one table."""

import numpy as np
import pytest

from fairpca.datasets import load_table
from fairpca.moments import group_moments
from fairpca.reproductions.vu2022 import protocol
from fairpca.reproductions.vu2022.published import PUBLISHED
from fairpca.reproductions.vu2022.tables import Tables, _row
from fairpca.reproductions.vu2022.toy import reproduce_toy


def test_split_takes_three_tenths_of_each_group():
    groups = np.repeat([0, 1], [100, 41])
    train, test = protocol.split(groups, 3)
    assert (groups[train] == 0).sum() == 30
    assert (groups[train] == 1).sum() == 12
    assert sorted(np.concatenate([train, test])) == list(range(141))
    assert not np.array_equal(train, protocol.split(groups, 4)[0])


def test_criteria_are_means_over_rows():
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((50, 4)) + 0.3, np.repeat([0, 1], [30, 20])
    basis = np.linalg.qr(rng.standard_normal((4, 2)))[0]
    means = rng.standard_normal((2, 4))
    moments = group_moments(X, groups)
    measured = protocol.measure(basis, moments, moments, means)

    def error(rows):
        return ((rows - rows @ basis @ basis.T) ** 2).sum(axis=1).mean()

    gap = error(X[:30] - means[0]) - error(X[30:] - means[1])
    assert measured.average == pytest.approx(error(X))
    assert measured.difference == pytest.approx(abs(gap))


def test_ecoli_matches_the_paper(shared_data):
    table = load_table(shared_data / "vu2022" / "Ecoli_Data.csv")
    row = _row(table, PUBLISHED["Ecoli_Data"], 10, svm=False)
    assert abs(row.excess_test) < 0.01
    assert abs(row.excess_train) < 0.01
    assert "E. Coli" in str(Tables([row]))


def test_separation_is_that_of_the_best_direction():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 200)
    X = rng.standard_normal((400, 3))
    assert protocol.linear_separation(X, groups, np.eye(3)[:, :1]) < 0.25
    X[:, 0] += 10 * groups
    assert protocol.linear_separation(X, groups, np.eye(3)[:, :1]) == pytest.approx(1)


def test_toy_directions_run_from_pca_to_equal_errors():
    toy = reproduce_toy()
    angles = [direction.angle for direction in toy.directions]
    pca, spectrum, fair = angles[0], angles[1:-1], angles[-1]
    assert spectrum[0] == pytest.approx(pca, abs=1e-3)
    assert (np.diff(spectrum) >= -1e-4).all()
    assert pca < 10 < 30 < fair < 45
    # The heaviest penalty equalises errors, FairPCA equalises losses: neighbours, not the same.
    assert np.ptp(toy.directions[-2].errors) < 1e-6
    assert np.ptp(toy.directions[-1].losses) < 1e-9
    assert spectrum[-1] == pytest.approx(fair, abs=1)
