"""The reproduction's protocol, its values on one table, and the whole run on other tables of the same layout."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from fairpca.moments import group_moments
from fairpca.problems.balanced import best_captured
from fairpca.problems.evaluation import Evaluation
from reproductions import reproduce, vu2022
from reproductions.__main__ import main
from reproductions._steps import Steps
from reproductions.datasets import load_table
from reproductions.vu2022 import comparisons, errata, protocol
from reproductions.vu2022.curves import by_components, pareto
from reproductions.vu2022.published import PUBLISHED
from reproductions.vu2022.tables import Study, average, performance_claims, result_of
from reproductions.vu2022.toy import directions, population, radius_effect


def small_table(rng, n=(60, 45), p=5):
    groups = np.repeat([0, 1], n)
    X = rng.normal(size=(sum(n), p)) * np.linspace(2.0, 0.5, p)
    X[groups == 1] = X[groups == 1][:, ::-1] + 0.3
    return X, groups


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
    moments = group_moments(X, sensitive_features=groups)
    measured = protocol.measure(basis, moments, moments, means)

    def error(rows):
        return ((rows - rows @ basis @ basis.T) ** 2).sum(axis=1).mean()

    gap = error(X[:30] - means[0]) - error(X[30:] - means[1])
    assert measured.average == pytest.approx(error(X))
    assert measured.difference == pytest.approx(abs(gap))


def test_ecoli_matches_the_paper(shared_data):
    table = load_table(shared_data / "vu2022" / "Ecoli_Data.csv")
    X, groups = protocol.features(table), table.sensitive_features
    results = []
    for seed in range(10):
        sample = protocol.Sample.draw(X, groups, seed)
        parameters = protocol.choose_robust(protocol.folds(sample.X[sample.train], groups[sample.train], seed))
        basis = protocol.robust(sample.inside, *parameters)
        results.append({"RobustFairPCA": result_of(sample, basis, separation=False)})
    claims = performance_claims([Study("Ecoli_Data", average(results), 10, np.array([134.0, 101.0]))])
    ours = [claim for claim in claims if claim.source in ("Table 1", "Table 3")]
    assert len(ours) == 6
    assert all(claim.verdict == "matched" for claim in ours)
    assert all(abs(claim.difference) < 0.01 * claim.theirs for claim in ours if "+" in claim.what)


def test_german_parity_of_means_is_the_printed_one_to_four_digits(shared_data):
    table = load_table(shared_data / "vu2022" / "German_Credit_Data.csv")
    X, groups = protocol.features(table), table.sensitive_features
    figures = []
    for seed in range(10):
        sample = protocol.Sample.draw(X, groups, seed)
        figures.append([(part.difference, part.average) for part in sample.figures(protocol.parity(sample.inside))])
    printed = PUBLISHED["German_Credit_Data"].methods["ParityPCA (means)"]
    np.testing.assert_allclose(np.mean(figures, axis=0), [printed.test, printed.train], atol=2e-4)


def test_separation_is_that_of_the_best_direction():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 200)
    X = rng.standard_normal((400, 3))
    assert protocol.linear_separation(X, groups, np.eye(3)[:, :1]) < 0.25
    X[:, 0] += 10 * groups
    assert protocol.linear_separation(X, groups, np.eye(3)[:, :1]) == pytest.approx(1)


def test_toy_directions_run_from_pca_to_equal_errors():
    found = directions()
    angles = [direction.angle for direction in found]
    pca, spectrum, fair = angles[0], angles[1:-1], angles[-1]
    assert spectrum[0] == pytest.approx(pca, abs=1e-3)
    assert (np.diff(spectrum) >= -1e-4).all()
    assert pca < 10 < 30 < fair < 45
    # The heaviest penalty equalises errors, FairPCA equalises losses: neighbours, not the same.
    assert np.ptp(found[-2].errors) < 1e-6
    assert np.ptp(found[-1].losses) < 1e-9
    assert spectrum[-1] == pytest.approx(fair, abs=1)


def test_radius_zero_is_the_fit_without_radius():
    effect = radius_effect(1, 2)
    assert effect.totals.shape == (1, 2)
    assert effect.alphas.tolist() == [0.0, 10.0]
    assert effect.totals[0, 0] != effect.totals[0, 1]


def test_pareto_counts_points_that_nothing_dominates(rng):
    curve = pareto("x", "x", *small_table(rng))
    assert curve.points["RobustFairPCA"].shape == (18, 2)
    assert (curve.path[:, 0] >= curve.points["PCA"][0, 0] - 1e-9).all()
    curve.points["FairPCA"] = np.array([[curve.points["PCA"][0, 0] - 1.0, 1e9]])
    curve.points["ParityPCA (means)"] = np.array([[1e9, 1e9]])
    assert curve.undominated == 1


def test_errors_fall_with_the_number_of_components(rng):
    item = by_components("x", "x", *small_table(rng, p=7), 1)
    assert item.components == [2, 4, 6]
    sums = item.errors["in sample"]["PCA"].sum(axis=1)
    assert (np.diff(sums) < 0).all()


def test_last_iterate_of_german(shared_data):
    name = "German_Credit_Data"
    claims, tables = errata.last_iterate({name: load_table(shared_data / "vu2022" / f"{name}.csv")})
    assert [claim.verdict for claim in claims] == ["matched", "matched"]
    last, best, optimum = (row[1] for row in tables[0].rows)
    assert optimum < best < last
    assert errata.last_iterate({}) == ([], [])


def test_lambda_is_lowered_where_the_smallest_eigenvalues_fall_below_the_radius():
    moments = population()
    assert errata.clipped_penalty(moments, 1, 0.01, 0.2) == 0.2  # within the smaller share
    assert errata.clipped_penalty(moments, 1, 0.01, 0.5) == 0.5  # eigenvalues 0.2 and 0.14 exceed the radii
    assert errata.clipped_penalty(moments, 1, 10.0, 0.5) == pytest.approx(1 / 3)


def test_port_as_meant_attains_the_optimum_and_has_trace_d(rng):
    X, groups = small_table(rng)
    moments = group_moments(X, sensitive_features=groups)
    matrices = moments.second_moments("group")
    meant = errata.port_of_fair_pca(matrices, 2, 0.25, as_meant=True)
    assert np.trace(errata.port_of_fair_pca(matrices, 2, 0.25)) == pytest.approx(2)
    best = best_captured(matrices, 2)
    exact = Evaluation(matrices, protocol.fair(moments, 2)).losses
    assert max(best - (matrices * meant).sum(axis=(1, 2))) == pytest.approx(exact.max(), rel=1e-2)


def test_groups_are_judged_at_three_components(rng, monkeypatch):
    monkeypatch.setattr(comparisons, "_DIVISIONS", 99)
    X, groups = small_table(rng, (200, 150))
    news = []
    steps = Steps(lambda *step: news.append(step), 4)
    found = comparisons.judge_groups("Ecoli_Data", "E. Coli", 100 * X, groups, steps)
    assert [one.test.n_components for one in found] == [3, 3]
    assert found[0].published == "ABDiff, a difference of errors: RFPCA 1.15, FairPCA 1.528"
    totals = found[0].new_rows.error.overall
    assert 0 < totals < X.shape[1]  # of standardised columns
    assert all(one.by_chance == "would not show this (p <= 0.01)" for one in found)
    assert comparisons.judge_groups("new", "new", X, groups, steps)[0].published == ""


def test_german_losses_are_not_random_but_not_shown_on_new_rows(shared_data, monkeypatch):
    monkeypatch.setattr(comparisons, "_DIVISIONS", 99)
    name = "German_Credit_Data"
    table = load_table(shared_data / "vu2022" / f"{name}.csv")
    X, groups = protocol.features(table), table.sensitive_features
    for one in comparisons.judge_groups(name, "German Credit", X, groups, Steps(lambda *news: None, 4)):
        assert one.by_chance == "would not show this (p <= 0.01)"
        assert one.losses_on_new_rows.startswith("no difference of losses is shown: group 0 above group 1")


def write_table(path, X, groups):
    header = ",".join([*(f"x{j}" for j in range(X.shape[1])), "label", "group"])
    label = (X[:, 0] > 0).astype(int)
    np.savetxt(path, np.column_stack([X, label, groups]), delimiter=",", header=header, comments="", fmt="%.6g")


def test_a_full_run_tests_differences_and_a_quick_one_leaves_no_value_out(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(protocol, "ALPHAS", (0.1,))
    monkeypatch.setattr(protocol, "PENALTIES", (0.0, 0.5))
    monkeypatch.setattr(protocol, "MEAN_LIMITS", (0.0, 0.9))
    monkeypatch.setattr(protocol, "COVARIANCE_PENALTIES", (0.001,))
    monkeypatch.setattr(vu2022, "radius_effect", lambda count, alphas, step: radius_effect(2, 3, step))
    monkeypatch.setattr(comparisons, "_DIVISIONS", 39)
    write_table(tmp_path / "Ecoli_Data.csv", *small_table(rng))
    full, quick = (reproduce("vu2022", tmp_path, quick=quick) for quick in (False, True))
    assert [claim.what for claim in quick.claims] == [claim.what for claim in full.claims]
    assert quick.unexamined == 0
    assert quick.counts == {"not judged": len(quick.claims)}
    names = [{table.name for table in outcome.tables} for outcome in (full, quick)]
    assert names[0] - names[1] == {"differences", "differences_by_group"}
    assert len(full.differences) == 3  # the summary, and one for each way of centring
    assert quick.differences == []


def test_other_tables_of_the_same_layout(tmp_path, rng, capsys, monkeypatch):
    monkeypatch.setattr(errata, "_STEPS", 20)  # smaller grids: it is the way from folder to report that is tested
    monkeypatch.setattr(protocol, "ALPHAS", (0.1,))
    monkeypatch.setattr(protocol, "PENALTIES", (0.0, 0.5))
    monkeypatch.setattr(protocol, "MEAN_LIMITS", (0.0, 0.9))
    folder = tmp_path / "data" / "vu2022"
    folder.mkdir(parents=True)
    write_table(folder / "new_|table.csv", *small_table(rng))
    write_table(folder / "Ecoli_Data.csv", *small_table(rng))
    X, groups = small_table(rng)
    write_table(folder / "three.csv", X, np.arange(len(X)) % 3)
    write_table(folder / "narrow.csv", X[:, :3], groups)
    out = tmp_path / "out"
    call = ["vu2022", "--data", str(tmp_path / "data"), "--quick", "--errata", "--out", str(out)]
    assert main(call) == 0
    text = capsys.readouterr().out
    assert "three is left out: it has 3 groups" in text
    assert "narrow is left out" in text
    assert "E. Coli, RobustFairPCA" in text  # published values are looked up by name
    report = (out / "report.md").read_text(encoding="utf-8")
    assert "quick run, which judges nothing" in report
    assert "not judged" in report
    assert not {"matched", "better", "explained"} & set(report.split())
    assert not (out / "differences.csv").exists()
    for number in (1, 3, 4):
        with (out / f"table_{number}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        assert sum(row[0] == "new_|table" for row in rows) == 5
    names = {path.name for path in out.iterdir()}
    assert {"claims.csv", "pareto.csv", "errors_by_k.csv", "radius.csv", "toy_directions.csv"} <= names
    assert {"erratum_lambda.csv", "erratum_fair_pca.csv", "figure_1.png", "figure_4.png", "pareto.png"} <= names
    assert {"errors_by_k_1_ecoli_data.png", "errors_by_k_2_new_table.png"} <= names
