"""Lee et al. (2022): the protocol, published values on the authors' splits, and a folder of other tables."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.svm import SVC

from reproductions import lee2022, reproduce
from reproductions.__main__ import main
from reproductions.datasets import load_splits
from reproductions.lee2022 import protocol, saved, synthetic2, table1
from reproductions.lee2022.loadings import Loadings, communalities, feature_names, sensitive_column
from reproductions.lee2022.protocol import Method, evaluate
from reproductions.lee2022.published import FEATURES, PUBLISHED
from reproductions.lee2022.running import Job, run_jobs
from reproductions.lee2022.synthetic2 import PROGRAM, Trial, figures_2_3, run_trial


def silent(done: int, total: int, next_step: str) -> None:
    return None


def write_splits(folder, n_splits=2, n_features=4, n=60):
    """Two groups that differ in the first feature; the last feature is the group itself."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    for i in range(n_splits):
        for part in ("train", "test"):
            groups = np.arange(n) % 2
            X = rng.normal(size=(n, n_features)) * np.linspace(2.0, 1.0, n_features)
            X[:, 0] += groups
            X[:, -1] = 2.0 * groups - 1.0
            label = (X[:, 1] > 0).astype(int)
            np.savetxt(folder / f"{part}_{i}.csv", np.column_stack([X, label, groups]), delimiter=",")
    return folder


@pytest.fixture
def tiny(tmp_path):
    return write_splits(tmp_path / "datasets" / "tiny")


def test_printed_lines_are_those_that_are_run():
    names = {method.name for method in protocol.methods(11)}
    for data, lines in PUBLISHED.items():
        assert {d for d, _ in lines} == {2, 10}, data
        assert {name for _, name in lines} <= names
        assert len(lines) == 10
    assert len(FEATURES["COMPAS"]) == 11
    assert len(FEATURES["German"]) == 57


def test_errata_are_additional_lines():
    plain, all_lines = protocol.methods(200), protocol.methods(200, errata=True)
    assert all_lines[: len(plain)] == plain
    assert {method.variant for method in plain} == {""}  # too many features for the program
    assert {method.variant for method in all_lines} == {"", protocol.UNIT_WEIGHT, protocol.RANDOM_START}


def test_what_each_line_fits():
    X = np.random.default_rng(0).normal(size=(100, 4))
    parity = protocol._estimator(Method("FPCA", 0.1), X, 2, 0)
    assert (parity.mean_tolerance, parity.covariance_penalty) == pytest.approx((0.1, 0.01 * 20))  # sqrt(100 * 4)
    assert protocol._estimator(Method("FPCA", 0.1, protocol.UNIT_WEIGHT), X, 2, 0).covariance_penalty == 20
    started = protocol._estimator(Method("MbF-PCA", 1e-3, protocol.RANDOM_START), X, 2, 5)
    assert (started.solver, started.tolerance, started.random_state) == ("repms", 1e-3, 5)
    assert protocol._estimator(Method("MbF-PCA", 1e-3), X, 2, 5).solver == "auto"


def test_figures_are_of_the_test_rows(tiny):
    split = next(load_splits(tiny, splits=[0]))
    fit = evaluate("tiny", split, 2, Method("PCA"))
    scores = split.X_test @ fit.components.T
    covariance = np.cov(split.X_test.T)
    share = np.trace(fit.components @ covariance @ fit.components.T) / np.trace(covariance)
    assert fit.test["%Var"] == pytest.approx(100 * share)
    # C = 1 and exp(-|z - z'|^2), fitted to the rows it is judged on; and to the training rows
    for rows, labels, accuracy in (
        (scores, split.y_test, "%Acc"),
        (split.X_train @ fit.components.T, split.y_train, "%Acc held out"),
    ):
        machine = SVC(C=1.0, gamma=1.0).fit(rows, labels)
        assert fit.test[accuracy] == pytest.approx(100 * machine.score(scores, split.y_test))
    assert fit.test["%Acc"] != fit.test["%Acc held out"]


@pytest.mark.parametrize("name", ["COMPAS", "German"])
def test_ordinary_pca_reproduces_every_printed_digit(shared_data, name):
    folder = shared_data / "lee2022" / "datasets" / name
    fits = [evaluate(name, split, 2, Method("PCA")) for split in load_splits(folder)]
    claims = table1.table_claims(fits)
    assert len(claims) == 8  # four means and their spreads
    assert [claim.verdict for claim in claims] == ["matched"] * 8


def test_the_authors_program_reproduces_their_saved_solution(shared_data):
    pytest.importorskip("cvxpy")
    folder = shared_data / "lee2022"
    split = next(load_splits(folder / "datasets" / "COMPAS", splits=[1]))
    for delta in (0.0, 0.1):
        theirs = saved.read_saved(folder / saved.FILE)["COMPAS", 2, f"FPCA ({delta:g})"][1]
        fit = evaluate("COMPAS", split, 2, Method("FPCA", delta, protocol.LOST_ROW))
        assert fit.test["%Var"] / 100 == pytest.approx(theirs.var_test, abs=1e-4)
        assert fit.train["MMD^2"] == pytest.approx(theirs.mmd2_train, abs=1e-4)
        # at rank d: more variance
        assert evaluate("COMPAS", split, 2, Method("FPCA", delta)).train["%Var"] > fit.train["%Var"] + 1


def test_mmd_line_against_the_saved_solution(shared_data):
    folder = shared_data / "lee2022"
    split = next(load_splits(folder / "datasets" / "German", splits=[0]))
    fit = evaluate("German", split, 2, Method("MbF-PCA", 1e-3))
    assert fit.converged
    assert fit.train["MMD^2"] <= 1e-3
    tables, claims = saved.compare_with_saved([fit], folder / saved.FILE)
    assert [claim.verdict for claim in claims] == ["matched"]
    assert tables[0].rows[0][:4] == ["German", 2, "MbF-PCA (0.001)", 1]


def test_verdict_on_saved_solutions():
    inside, outside = saved.Saved(0.3, 1e-4, 0.3, 1e-2), saved.Saved(0.3, 1e-2, 0.3, 1e-2)
    assert saved.holds_against(inside, variance=0.31, discrepancy=1e-3, tolerance=1e-3)
    assert not saved.holds_against(inside, variance=0.29, discrepancy=1e-4, tolerance=1e-3)
    assert not saved.holds_against(inside, variance=0.31, discrepancy=2e-3, tolerance=1e-3)
    assert saved.holds_against(outside, variance=0.2, discrepancy=1e-2, tolerance=1e-3)
    assert not saved.holds_against(outside, variance=0.4, discrepancy=1.1e-2, tolerance=1e-3)


def test_without_saved_solutions_nothing_is_said_of_them(tmp_path):
    assert saved.compare_with_saved([], tmp_path / saved.FILE) == ([], [])


def test_data_sets_are_found_in_each_layout(tmp_path, tiny):
    assert table1.find_data(tmp_path) == {"tiny": tiny}
    assert table1.find_data(tmp_path / "datasets") == {"tiny": tiny}
    assert table1.find_data(tiny) == {"tiny": tiny}
    (tmp_path / "empty").mkdir()
    assert table1.find_data(tmp_path / "empty") == {}


def test_full_table_of_another_folder(tmp_path):
    folder = write_splits(tmp_path / "five", n_features=5)
    jobs = table1.table_jobs(tmp_path, quick=False, errata=True)
    slow = (protocol.RANDOM_START, protocol.LOST_ROW)
    jobs = [job for job in jobs if job.arguments[-1].parameter != 1e-6 and job.arguments[-1].variant not in slow]
    assert {job.arguments[3] for job in jobs} == {2}  # 10 components need more features
    jobs = [job for job in jobs if job.arguments[2] == 0 or job.arguments[-1].family == "PCA"]  # the others once
    fits = run_jobs(jobs, silent, n_jobs=1)
    (table,) = table1.tables(fits)
    assert table.name == "table1_five"
    assert [row[2] for row in table.rows] == [2] + [1] * (len(table.rows) - 1)
    assert {"PCA", "FPCA (0.1)", "MbF-PCA (0.001)", "FPCA (0), weight 1"} <= {row[1] for row in table.rows}
    assert table1.table_claims(fits) == []  # nothing is printed for it
    again = run_jobs(jobs[-1:], silent, n_jobs=1)[0]
    np.testing.assert_array_equal(again.components, fits[-1].components)
    assert all(np.isfinite(value) for row in table1.beyond_table(fits).rows for value in row[4:6] + row[7:])
    kept = Loadings("five", folder, fits)
    assert kept.column == 4
    (shares,), (boxes,), claims = communalities([kept])
    assert claims == []
    expected = np.median([(fit.components[:, 4] ** 2).sum() for fit in fits if fit.method == Method("PCA")])
    assert {row[3]: row[4] for row in shares.rows}["PCA"] == pytest.approx(expected)
    assert boxes.name == "communality"


def test_planned_fits_are_compared_with_the_same_published_values(tmp_path, tiny, monkeypatch):
    """The stand-ins by which a quick run counts what it leaves out lead to the claims that the fits lead to."""
    monkeypatch.setitem(PUBLISHED, "tiny", PUBLISHED["COMPAS"])
    jobs = table1.table_jobs(tmp_path, quick=True, errata=False)
    fits, planned = run_jobs(jobs, silent, n_jobs=1), table1.planned_fits(jobs)
    whats = [[claim.what for claim in table1.table_claims(each)] for each in (fits, planned)]
    assert whats[0] == whats[1]
    assert len(whats[0]) == 4 * 4
    full = table1.planned_fits(table1.table_jobs(tmp_path, quick=False, errata=False))
    assert len(full) > len(planned)
    assert set(whats[0]) < {claim.what for claim in table1.table_claims(full)}


def test_a_quick_run_counts_what_it_leaves_out(tmp_path, tiny, monkeypatch):
    monkeypatch.setitem(PUBLISHED, "tiny", PUBLISHED["COMPAS"])
    monkeypatch.setattr(lee2022, "figure_1_jobs", lambda quick: [])
    monkeypatch.setattr(lee2022, "figure_1", lambda samples: (None, None, []))
    monkeypatch.setattr(synthetic2.importlib.util, "find_spec", lambda name: None)  # no programs
    outcome = reproduce("lee2022", tmp_path, quick=True)
    table = [claim for claim in outcome.claims if claim.source == "Table 1"]
    # PCA with spreads, FPCA twice, MbF-PCA twice; a quick run has no spreads and leaves out one MbF-PCA.
    assert len(table) == 4 * 4
    assert outcome.unexamined == 4 * (2 + 2 + 2) - 4 * 4


def test_sensitive_column_is_recognised_among_others():
    groups = np.array([0, 1, 0, 1])
    X = np.column_stack([[1.0, 2.0, 3.0, 4.0], np.where(groups, 3.0, -1.0), np.ones(4)])
    assert sensitive_column(X, groups) == 1
    assert sensitive_column(X[:, [0, 2]], groups) is None
    assert feature_names("COMPAS", 11)[1] == "race"
    assert feature_names("COMPAS", 3) == ["x0", "x1", "x2"]


def test_claims_of_figure_2_compare_means_over_splits():
    def trial(p, split, method, variance, seconds):
        return Trial(p, split, method, variance, 0.01, 0.001, 0.02, seconds)

    names = ("PCA", "FPCA (0)", "MbF-PCA (1e-05)", PROGRAM.name)
    trials = [trial(20, i, name, 10.0 * k + i, 1.0 + k) for i in range(2) for k, name in enumerate(names)]
    table, _, claims = figures_2_3(trials)
    assert [row[1] for row in table.rows] == list(names)
    assert [row[-1] for row in table.rows] == pytest.approx([1 / 3, 2 / 3, 1.0, 4 / 3])
    assert claims[0].ours == pytest.approx(-10.0)  # MbF-PCA minus the program
    assert claims[3].ours == pytest.approx(10.0)  # minus FPCA


def test_trial_splits_each_group_the_same_way():
    trial = run_trial(20, 0, Method("PCA"))
    assert trial.variance > run_trial(20, 0, Method("FPCA", 0.0)).variance
    assert trial.mmd2 > 3 * trial.random_level


def test_jobs_keep_their_order_and_announce_themselves():
    news = []
    jobs = [Job(f"job {i}", pow, (i, 2)) for i in range(3)]
    assert run_jobs(jobs, lambda *step: news.append(step), n_jobs=1) == [0, 1, 4]
    assert news[0] == (0, 3, "job 0")
    assert news[-1] == (3, 3, "report")


def test_command_writes_everything(tmp_path, tiny, capsys):
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    assert main(["lee2022", "--data", str(tmp_path), "--quick", "--out", str(out)]) == 0
    assert "quick run" in capsys.readouterr().out
    for name in ("report.md", "claims.csv", "table1_tiny.csv", "beyond_table1.csv", "figure_1.csv", "figures_2_3.csv"):
        assert (out / name).stat().st_size > 100, name
    for name in ("figure_1.png", "figures_2_3.png", "communality.png", "biplot_tiny.png"):
        assert (out / name).stat().st_size > 5000, name
    with (out / "table1_tiny.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == ["PCA", "FPCA (0.1)", "FPCA (0)", "MbF-PCA (0.001)"]
    assert {row["splits"] for row in rows} == {"1"}


def test_missing_data_is_explained(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"fair-manifold-pca.*train_0\.csv"):
        reproduce("lee2022", tmp_path)
