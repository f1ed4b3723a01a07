"""The 2018 paper: protocol and algorithms on small cases, its statements on the credit table, and whole runs."""

import csv
import dataclasses

import numpy as np
import pytest

from fairpca.moments import group_moments
from reproductions import reproduce
from reproductions.__main__ import main
from reproductions._steps import Steps
from reproductions.samadi2018 import algorithms, comparisons, protocol, study
from reproductions.samadi2018.claims import _at_most, claims_of, count_unexamined
from reproductions.samadi2018.protocol import Data, Source
from reproductions.samadi2018.published import PUBLISHED
from reproductions.samadi2018.study import _search, measure


@pytest.fixture
def data(two_groups):
    X, groups = two_groups
    return Data("small", False, X - X.mean(axis=0), groups)


def _projector(rows, d, center=True):
    rows = rows - rows.mean(axis=0) if center else rows
    basis = np.linalg.svd(rows, full_matrices=False)[2][:d].T
    return basis @ basis.T


def _error(rows, projector):
    return ((rows - rows @ projector) ** 2).sum() / len(rows)


def _own(data, label):
    rows = data.X[data.groups == label]
    return rows - rows.mean(axis=0)


def test_curves_are_errors_of_rows_about_group_means(data):
    pca = protocol.pca_curves(data.moments, [1, 3])
    fair = protocol.fair_curves(data.moments, [1, 3])
    assert pca.groups == ("a", "b")
    for i, d in enumerate((1, 3)):
        projector = _projector(data.X, d)
        for a, label in enumerate("ab"):
            rows = _own(data, label)
            assert pca.errors[i, a] == pytest.approx(_error(rows, projector))
            best = _error(rows, _projector(rows, d))
            assert pca.losses[i, a] == pytest.approx(_error(rows, projector) - best)
            assert fair.losses[i, a] == pytest.approx(fair.errors[i, a] - best)
        assert pca.average[i] == pytest.approx(pca.errors[i] @ [2 / 3, 1 / 3])
    assert (fair.gaps < 1e-10).all()
    assert (fair.largest <= pca.largest).all()


def test_multiplicative_weights_step_by_step(data):
    first, second = _own(data, "a"), _own(data, "b")
    best = [_error(rows, _projector(rows, 2)) for rows in (first, second)]
    weights, expected = np.array([0.5, 0.5]), []
    for _ in range(4):
        stacked = np.vstack([np.sqrt(weights[0] / 200) * first, np.sqrt(weights[1] / 100) * second])
        projector = _projector(stacked, 2)
        losses = np.array([_error(first, projector) - best[0], _error(second, projector) - best[1]])
        expected.append(losses)
        weights = weights * np.exp(3.0 * losses)
        weights /= weights.sum()
    trace = algorithms.multiplicative_weights(algorithms.true_oracle(data.moments, 2), 2, 3.0, 4)
    np.testing.assert_allclose(trace.losses, expected, atol=1e-12)
    average = np.mean(expected, axis=0).max()
    assert trace.values[-1] == pytest.approx(min(average, expected[-1].max()))


def test_erratum_is_that_of_rows_left_uncentred(data):
    p, uncentred, centred = data.X.shape[1], {}, {}
    for label in "ab":
        rows = data.X[data.groups == label].copy()
        rows[:p] -= rows.mean(axis=0)
        uncentred[label], centred[label] = rows, rows - rows.mean(axis=0)
    oracle, of_basis = algorithms.erratum_oracle(data, 2)
    stacked = np.vstack([np.sqrt(0.3 / 200) * uncentred["a"], np.sqrt(0.7 / 100) * uncentred["b"]])
    own = {label: _error(rows, _projector(centred[label], 2)) for label, rows in uncentred.items()}
    expected = [_error(rows, _projector(stacked, 2)) - own[label] for label, rows in uncentred.items()]
    np.testing.assert_allclose(oracle(np.array([0.3, 0.7])), expected)
    basis = np.eye(p)[:, :2]
    expected = [_error(rows, basis @ basis.T) - own[label] for label, rows in uncentred.items()]
    np.testing.assert_allclose(of_basis(basis), expected)


def test_search_stopped_early_ends_in_the_optimum(data):
    found = algorithms.stopped_early(data.moments, 3)
    optimum = protocol.fair_curves(data.moments, [3]).largest[0]
    assert (np.diff(found[:, 0]) > 0).all()
    assert found[0, 1] >= optimum - 1e-12
    assert found[-1, 1] == pytest.approx(optimum, abs=1e-10)


def test_algorithm_one_attains_the_optimum_with_at_most_one_dimension_more(data):
    rounded = algorithms.algorithm_one(data.moments, 3)
    assert rounded.rank in (3, 4)
    fair = protocol.fair_curves(data.moments, [3])
    assert rounded.objective == pytest.approx(fair.largest[0], abs=1e-5 * fair.total)


def test_eigengap_is_zero_at_a_tie():
    X = np.vstack([np.eye(3), -np.eye(3)])
    moments = group_moments(np.vstack([X, 2 * X]), sensitive_features=np.repeat([0, 1], 6))
    assert algorithms.eigengap(moments, 1, np.array([0.5, 0.5])) == pytest.approx(0, abs=1e-12)
    stretched = group_moments(np.vstack([X, X]) * [2.0, 1.0, 1.0], sensitive_features=np.repeat([0, 1], 6))
    assert algorithms.eigengap(stretched, 1, np.array([0.5, 0.5])) == pytest.approx(0.75)


def test_equal_samples_have_equal_groups(data):
    moments = protocol.equal_sample(data, 40, 1)
    assert moments.counts.tolist() == [40, 40]
    assert not np.allclose(moments.means, protocol.equal_sample(data, 40, 2).means)
    np.testing.assert_array_equal(moments.means, protocol.equal_sample(data, 40, 1).means)


@pytest.fixture(scope="module")
def credit(shared_data):
    path = shared_data / "samadi2018" / "default_degree.csv"
    return protocol.read(Source("default_degree", path, False))


def test_credit_is_scaled_and_has_the_papers_dimensions(credit):
    assert credit.X.shape == (30000, 21)
    assert credit.complete.shape == (30000, 22)
    np.testing.assert_allclose(credit.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(credit.X.std(axis=0, ddof=1), 1)


def test_credit_losses_by_education_are_what_random_groups_show(credit, monkeypatch):
    monkeypatch.setattr(comparisons, "_OF_TABLES", (5,))
    monkeypatch.setattr(comparisons, "_DIVISIONS_OF_TABLES", 99)
    (comparison,) = comparisons.comparisons_of(credit)
    assert comparison.published == "PCA's loss is larger for lower education"
    for one in comparison.judge(Steps(lambda *news: None, comparison.steps)):
        assert one.in_sample.startswith("lower education above higher education")  # as published
        assert one.by_chance.startswith("could show this as well")
        assert one.losses_on_new_rows.startswith("no difference of losses is shown")


@pytest.mark.parametrize(("d", "optimum"), [(5, 0.049010), (12, 0.008887)])
def test_credit_matches_the_script_and_the_proven_optimum(credit, d, optimum):
    fair = protocol.fair_curves(credit.moments, [d])
    search = _search(credit, d, fair, lambda what: None)
    noted, precision = PUBLISHED["default_degree"].script[d]
    assert search.fixed.values[search.authors_steps - 1] == pytest.approx(noted, abs=precision)
    assert search.optimum == pytest.approx(optimum, abs=1e-6)
    assert search.tuned.values[19] == pytest.approx(optimum, abs=1e-5)
    assert search.ours[-1, 0] <= 15


def test_credit_erratum_lies_below_what_can_be_attained(credit):
    oracle, _ = algorithms.erratum_oracle(credit, 5)
    uncentred = algorithms.multiplicative_weights(oracle, 2, 1.0, 10).values[-1]
    attainable = protocol.fair_curves(credit.moments, [5], center="pooled")
    assert attainable.gaps[0] < 1e-10
    assert uncentred < 0.9 * attainable.largest[0]


def test_raw_table_gives_the_same_values(credit, shared_data):
    raw = protocol.read(Source("UCI_Credit_Card", shared_data / "uci" / "UCI_Credit_Card.csv", False))
    assert raw.X.shape == credit.X.shape
    ours, theirs = (protocol.fair_curves(data.moments, [5]) for data in (raw, credit))
    np.testing.assert_allclose(ours.errors, theirs.errors, rtol=1e-9)


@pytest.fixture
def folder(tmp_path):
    """Images and a table of the papers' layouts, under other names and of other sizes."""
    rng = np.random.default_rng(3)
    sex = np.repeat([0, 1], [40, 90])
    gray = rng.integers(0, 60, size=(130, 30)) + np.where(sex[:, None] == 1, np.arange(30), 30)
    np.savez(tmp_path / "pictures.npz", gray3=gray, lut=np.linspace(0, 255, 120), sex=sex)
    education = rng.integers(0, 5, size=200)
    columns = rng.normal(size=(200, 7)) * np.where(np.isin(education, (1, 2)), 1.0, 2.0)[:, None]
    lines = [",X1,X2,X3,X4,X5,X6,X7,X8", "ID,EDUCATION,A,B,C,D,E,F,PAY_AMT6"]
    lines += [f"{i},{education[i]},{','.join(f'{value:.6f}' for value in columns[i])}" for i in range(200)]
    (tmp_path / "some table.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def _rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_another_folder_of_the_same_layout_from_the_command_line(folder, tmp_path, capsys):
    (folder / "notes.csv").write_text("what,when\nnothing,never\n")
    out = tmp_path / "out"
    assert main(["samadi2018", "--data", str(folder), "--quick", "--errata", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "Theorem 4.5: pictures" in printed
    assert "Left out" in printed
    assert "notes.csv" in printed
    assert "Abstract" not in printed  # nothing is published about these data
    tables = {path.stem for path in out.glob("*.csv")}
    assert tables == {
        "claims", "pictures_curves", "pictures_samples_40", "pictures_weights", "some_table_curves",
        "some_table_variants", "some_table_weights", "some_table_algorithm1", "some_table_errata",
    }  # fmt: skip
    assert {path.stem for path in out.glob("*.png")} == {
        "figure1_pictures", "figure3", "figure4", "weights_pictures", "weights_some_table", "errata_some_table",
    }  # fmt: skip
    assert [row["d"] for row in _rows(out / "some_table_curves.csv")] == list("123456")
    assert [row["d"] for row in _rows(out / "pictures_curves.csv")] == ["1", "2", "3", "5", "10", "15", "20"]
    assert {row["verdict"] for row in _rows(out / "claims.csv")} == {"not judged"}


def test_full_run_of_another_folder_tests_its_differences(folder, monkeypatch):
    """Groups of the table differ in spread alone; of the pictures in direction and mean."""
    monkeypatch.setattr(comparisons, "_DIVISIONS_OF_TABLES", 39)
    monkeypatch.setattr(study, "_SAMPLES", 1)
    monkeypatch.setattr(study, "_MOST_FEATURES_SDP", 0)  # Algorithm 1 is tested elsewhere
    seen = []
    outcome = reproduce("samadi2018", folder, progress=lambda *news: seen.append(news))
    assert outcome.succeeded
    assert outcome.unexamined == 0
    (verdicts,) = [table for table in outcome.tables if table.name == "differences"]
    lines = [dict(zip(verdicts.columns, row, strict=True)) for row in verdicts.rows]
    compared = [(line["data set"], line["rows"]) for line in lines]
    assert set(compared) == {
        ("pictures", "all rows"), ("pictures", "40 of each group"), ("some table", "all rows"),
    }  # fmt: skip
    assert {line["d"] for line in lines if line["data set"] == "some table"} == {2, 5}
    assert len(outcome.differences) == 1 + len(lines)
    reading = [i for i, (_, _, what) in enumerate(seen) if "reading" in what]
    assert all(done < total for done, total, _ in seen[reading[-1] + 1 :])


def test_a_quick_run_counts_what_it_leaves_out(folder, monkeypatch):
    monkeypatch.setitem(PUBLISHED, "pictures", dataclasses.replace(PUBLISHED["lfw"], rows=130))
    monkeypatch.setattr(study, "_SAMPLE_TOTAL", 40)  # two readings: 20 and 40 of each group
    monkeypatch.setattr(study, "_SAMPLES", 1)
    data = protocol.read(Source("pictures", folder / "pictures.npz", True))
    quick, full = (measure(data, quick=quick, errata=False, step=lambda what: None) for quick in (True, False))
    assert count_unexamined(quick) == 2
    assert count_unexamined(full) == 0
    assert len(claims_of(quick)) + 2 == len(claims_of(full))


def test_faces_are_pictures_of_the_same_persons(folder, monkeypatch):
    data = protocol.read(Source("pictures", folder / "pictures.npz", True))
    assert {one.rows.repeats for one in comparisons.comparisons_of(data)} == {""}
    monkeypatch.setitem(PUBLISHED, "pictures", dataclasses.replace(PUBLISHED["lfw"], rows=130))
    everything, equal = comparisons.comparisons_of(data)
    assert "persons" in everything.rows.repeats
    assert "persons" in equal.rows.repeats
    assert dict(zip(*np.unique(equal.rows.groups, return_counts=True), strict=True)) == {"men": 40, "women": 40}
    assert everything.published == "PCA's loss is larger for women"


def test_authors_own_folders_are_found(folder):
    """images/ with one text file a picture, and credit/; the names are the paper's, the data is not."""
    (folder / "data" / "images").mkdir(parents=True)
    (folder / "data" / "credit").mkdir()
    with np.load(folder / "pictures.npz") as file:
        pixels, sex = file["lut"][file["gray3"]], file["sex"]
    np.savetxt(folder / "data" / "images" / "sex.txt", sex)
    for i, row in enumerate(pixels):
        np.savetxt(folder / "data" / "images" / f"img{i}.txt", row)
    (folder / "some table.csv").rename(folder / "data" / "credit" / "default_degree.csv")
    sources = protocol.find_sources(folder)
    assert [source.name for source in sources] == ["pictures", "images", "default_degree"]
    pictures, images, _ = (protocol.read(source) for source in sources)
    np.testing.assert_allclose(images.X, pictures.X)
    np.testing.assert_array_equal(images.groups, pictures.groups)
    (folder / "pictures.npz").unlink()
    outcome = reproduce("samadi2018", folder, quick=True)
    assert "images: 130 rows, not the 13232" in str(outcome)
    assert all(claim.verdict in ("matched", "better") for claim in outcome.claims)


def test_three_groups_and_equal_names(tmp_path, rng):
    X = rng.normal(size=(90, 8)) * np.linspace(1, 3, 8)
    groups = np.repeat(["r", "s", "t"], 30)
    X[30:60] = X[30:60, ::-1]
    for subfolder in ("images", "data"):
        (tmp_path / subfolder).mkdir()
        np.savez(tmp_path / subfolder / "three.npz", X=X, groups=groups)
    seen = []
    outcome = reproduce("samadi2018", tmp_path, quick=True, progress=lambda *values: seen.append(values))
    names = [table.name for table in outcome.tables]
    assert "three_curves" in names
    assert "three-2_curves" in names
    assert {claim.source for claim in outcome.claims} == {"Theorem 5.2", "Section 5"}
    assert all(claim.verdict in ("matched", "better") for claim in outcome.claims)
    assert all(done < total for done, total, _ in seen)


@pytest.mark.parametrize("swap", [False, True])
def test_statements_of_the_paper_depend_on_the_data(folder, monkeypatch, swap):
    """PCA follows the group with the larger spread here: it has the larger error, the other one the larger loss."""
    monkeypatch.setitem(PUBLISHED, "some table", dataclasses.replace(PUBLISHED["default_degree"], rows=200))
    data = protocol.read(Source("some table", folder / "some table.csv", False))
    swapped = np.where(data.groups == "lower education", "higher education", "lower education")
    data = Data("some table", False, data.X, swapped if swap else data.groups)
    claims = claims_of(measure(data, quick=True, errata=False, step=lambda what: None))
    verdicts = {claim.what: claim.verdict for claim in claims}
    statement = "Default credit: values of d at which PCA's {} is larger for lower education"
    assert verdicts[statement.format("error")] == ("explained" if swap else "matched")
    assert verdicts[statement.format("loss")] == ("matched" if swap else "differs")
    assert verdicts["Default credit: original dimensions"] == "differs"


def test_no_excuse_where_ours_is_worse():
    assert _at_most("Section 1", "calls", 16.0, 15.0, "few are needed").verdict == "differs"
    assert _at_most("Section 1", "calls", 14.0, 15.0, "few are needed").explanation


def test_missing_data_is_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"default_degree\.csv"):
        reproduce("samadi2018", None)
    with pytest.raises(FileNotFoundError, match=r"holds no data of samadi2018.*gray3, lut and sex"):
        reproduce("samadi2018", tmp_path)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FileNotFoundError, match="neither a column EDUCATION"):
        reproduce("samadi2018", tmp_path)
