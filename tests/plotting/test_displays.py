"""Pictures hold the right numbers and draw them, whatever names come with the data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from fairpca import FairPCA, KernelParityPCA, MMDFairPCA, ParityPCA, RobustFairPCA
from fairpca.datasets import load_german_credit
from fairpca.metrics import reconstruction_loss
from fairpca.model_selection import compare, frontier
from fairpca.plotting import (
    BiplotDisplay,
    CommunalityDisplay,
    ConvergenceDisplay,
    FrontierDisplay,
    GroupErrorDisplay,
    LoadingsDisplay,
    ProjectionDisplay,
)
from fairpca.plotting._style import COLOURS

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
matplotlib.use("Agg")
agg = pytest.importorskip("matplotlib.backends.backend_agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def drawn(display):
    """Render, so that bad text or data would fail here; return the axes."""
    display.figure_.canvas.draw()
    return display.ax_


def displays_of(X, groups):
    """Every class method that draws, as a function of the axes."""
    pca, robust = FairPCA(2).fit(X, sensitive_features=groups), RobustFairPCA(2).fit(X, sensitive_features=groups)
    given = {"sensitive_features": groups}
    curve = frontier(X, sensitive_features=groups, n_components=2)
    found = compare(X, sensitive_features=groups, n_components=[1], methods=["PCA"])
    return {
        "biplot": lambda ax: BiplotDisplay.from_estimator(pca, X, **given, ax=ax),
        "communality": lambda ax: CommunalityDisplay.from_estimator(pca, ax=ax),
        "convergence": lambda ax: ConvergenceDisplay.from_estimator(robust, ax=ax),
        "records": lambda ax: ConvergenceDisplay.from_records(robust.history_, ax=ax),
        "frontier": lambda ax: FrontierDisplay.from_estimator(pca, X, **given, kind="groups", ax=ax),
        "curve": lambda ax: FrontierDisplay.from_frontier(curve, ax=ax),
        "errors": lambda ax: GroupErrorDisplay.from_estimator(pca, X, **given, n_components=[1, 2], ax=ax),
        "comparison": lambda ax: GroupErrorDisplay.from_comparison(found, ax=ax),
        "loadings": lambda ax: LoadingsDisplay.from_estimator(pca.rotated(), ax=ax),
        "projection": lambda ax: ProjectionDisplay.from_estimator(pca, X, **given, ax=ax),
    }


def test_class_methods_draw_once_and_return_the_display(two_groups):
    """As in scikit-learn: also ``plot`` returns the display, which can be drawn again elsewhere."""
    import matplotlib.pyplot as plt

    for name, draw in displays_of(*two_groups).items():
        before = len(plt.get_fignums())
        display = draw(None)
        assert len(plt.get_fignums()) == before + 1, name
        assert display.figure_ is plt.figure(plt.get_fignums()[-1]), name
        drawn(display)
        ax = plt.subplots()[1]
        on_ax = draw(ax)
        assert type(on_ax) is type(display)
        assert on_ax.ax_ is ax
        assert ax.has_data(), name
        assert display.plot(ax) is display
        assert (display.ax_, display.figure_) == (ax, ax.figure)
        plt.close("all")


def test_group_errors(two_groups):
    X, groups = two_groups
    both = {"PCA": PCA(), "FairPCA": FairPCA()}
    display = GroupErrorDisplay.from_estimator(both, X, sensitive_features=groups, n_components=[1, 2, 3], of="loss")
    expected = reconstruction_loss(X, PCA(2).fit(X), sensitive_features=groups)
    np.testing.assert_allclose(display.values["PCA"][1], list(expected.values()))
    np.testing.assert_allclose(*display.values["FairPCA"].T, atol=1e-9)
    ax = drawn(display)
    assert len(display.lines_) == 4
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), [1, 2, 3])
    assert "reconstruction loss" in ax.get_ylabel()


def test_group_errors_of_a_comparison(two_groups):
    X, groups = two_groups
    found = compare(X, sensitive_features=groups, n_components=[1, 2], methods=["PCA", "FairPCA"])
    display = GroupErrorDisplay.from_comparison(found, of="error")
    assert display.values["PCA"].shape == (2, 2)
    drawn(display.plot())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_frontier(two_groups):
    X, groups = two_groups
    estimator = RobustFairPCA(2, radius=0.0, penalty=0.2).fit(X, sensitive_features=groups)
    display = FrontierDisplay.from_estimator(estimator, X, sensitive_features=groups)
    assert display.methods["RobustFairPCA"].gap == pytest.approx(np.ptp(estimator.group_errors_))
    for kind in ("trade-off", "groups"):
        ax = drawn(FrontierDisplay.from_estimator(estimator, X, sensitive_features=groups, kind=kind))
        assert len(ax.lines) == 1 + len(display.methods)
        assert "error" in ax.get_xlabel()
        assert "better" in ax.get_xlabel()
        assert "better" in ax.get_ylabel()
    with pytest.raises(ValueError, match="kind='pie'"):
        FrontierDisplay.from_estimator(estimator, X, sensitive_features=groups, kind="pie")
    three = frontier(X, sensitive_features=np.arange(len(X)) % 3, n_components=2)
    drawn(FrontierDisplay.from_frontier(three).plot())
    with pytest.raises(ValueError, match="exactly two groups"):
        FrontierDisplay.from_frontier(three, kind="groups")


@pytest.mark.parametrize("kind", ["trade-off", "groups"])
def test_what_a_method_balances_is_drawn_so_that_it_lies_on_the_frontier(two_groups, kind):
    """FairPCA balances losses: on axes of errors it would seem worse than ordinary PCA in both."""
    X, groups = two_groups
    for estimator, of in ((FairPCA(2), "loss"), (FairPCA(2, criterion="error"), "error"), (RobustFairPCA(2), "error")):
        fitted = estimator.fit(X, sensitive_features=groups)
        display = FrontierDisplay.from_estimator(fitted, X, sensitive_features=groups, kind=kind)
        assert display.curve.of == of
        assert of in display.ax_.get_xlabel()
        if of == "loss":
            assert display.methods["FairPCA"].gap < 1e-8 < display.methods["PCA"].gap
            losses = dict(zip("ab", display.methods["FairPCA"].errors - display.curve.own_errors, strict=True))
            assert losses == pytest.approx(dict(reconstruction_loss(X, fitted, sensitive_features=groups)), abs=1e-8)
    other = FrontierDisplay.from_estimator(fitted, X, sensitive_features=groups, of="loss", kind=kind)
    assert set(other.methods) == {"PCA", "FairPCA", "RobustFairPCA"}
    assert "loss" in other.ax_.get_xlabel()


def shows(figure, colour):
    """How many pixels of the picture have a colour."""
    canvas = agg.FigureCanvasAgg(figure)  # other tests of this process may have chosen a backend without pixels
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())[..., :3].astype(int)
    wanted = np.array(matplotlib.colors.to_rgb(colour)) * 255
    return int((np.abs(picture - wanted).max(axis=-1) < 30).sum())


def test_groups_that_coincide_are_both_seen(two_groups):
    X, groups = two_groups
    both = GroupErrorDisplay.from_estimator(
        FairPCA(), X, sensitive_features=groups, n_components=[1, 2, 3, 4], of="loss"
    )
    assert np.abs(np.diff(both.values["FairPCA"])).max() < 1e-8
    scores = np.repeat(np.random.default_rng(0).normal(size=(40, 2)), 2, axis=0)
    same = ProjectionDisplay(scores, np.arange(80) % 2, ("a", "b")).plot()
    histogram = ProjectionDisplay(scores[:, :1], np.arange(80) % 2, ("a", "b"), (0,)).plot()
    for display in (both, same, histogram):
        display.ax_.get_legend().remove()
        for colour in COLOURS[:2]:
            assert shows(display.figure_, colour) > 40, type(display).__name__


@pytest.mark.parametrize("with_rows", [False, True])
def test_names_in_a_biplot_neither_collide_nor_leave_the_axes(with_rows):
    data = load_german_credit()
    fitted = FairPCA(2).fit(data.data, sensitive_features=data.sensitive_features)
    rows = {"X": data.data, "sensitive_features": data.sensitive_features} if with_rows else {}
    for count in (10, 16):
        display = BiplotDisplay.from_estimator(fitted, **rows, feature_names=data.feature_names, n_features=count)
        ax = drawn(display)
        boxes = [text.get_bbox_patch().get_window_extent() for text in ax.texts if text.get_text()]
        assert len(boxes) == count
        frame = ax.get_window_extent()
        for i, box in enumerate(boxes):
            assert frame.x0 - 2 <= box.x0 <= box.x1 <= frame.x1 + 2
            assert not any(box.overlaps(other) for other in boxes[:i])


def test_every_display_has_a_title_and_named_axes(two_groups):
    for name, draw in displays_of(*two_groups).items():
        ax = draw(None).ax_
        assert ax.get_title(), name
        assert ax.get_xlabel(), name
        assert name in ("communality", "loadings") or ax.get_ylabel(), name


@pytest.mark.parametrize("d", [1, 3])
def test_projection(two_groups, d):
    X, groups = two_groups
    estimator = ParityPCA(d).fit(X, sensitive_features=groups)
    display = ProjectionDisplay.from_estimator(estimator, X, sensitive_features=groups)
    np.testing.assert_allclose(display.scores, estimator.transform(X)[:, :2])
    import matplotlib.pyplot as plt

    ax = plt.subplots()[1]
    assert drawn(display.plot(ax)) is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a (200 rows)", "b (100 rows)"]


def test_biplot_and_communality_with_hostile_names(two_groups):
    X, groups = two_groups
    names = ["$x^{2", "_hidden", "<b>", "a\\b", "%", "ordinary", "{}"]
    estimator = FairPCA(2).fit(X, sensitive_features=groups)
    biplot = BiplotDisplay.from_estimator(estimator, X, sensitive_features=groups, feature_names=names)
    ax = drawn(biplot.plot())
    assert {text.get_text().strip() for text in ax.texts} >= {"ordinary", "<b>"}
    bars = CommunalityDisplay.from_estimator({"$a_{": estimator, "PCA": PCA(2).fit(X)}, feature_names=names)
    np.testing.assert_allclose(bars.values["PCA"].sum(), 2.0)
    drawn(bars.plot())
    with pytest.raises(ValueError, match=r"must be two positions from 0 to 0: the estimator has 1 component"):
        BiplotDisplay.from_estimator(PCA(1).fit(X))
    with pytest.raises(ValueError, match="feature_names has 1 names"):
        CommunalityDisplay.from_estimator(estimator, feature_names=["x"])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_convergence(two_groups):
    X, groups = two_groups
    robust = RobustFairPCA(2).fit(X, sensitive_features=groups)
    (name, objective), (other, bound) = ConvergenceDisplay.from_estimator(robust).curves
    assert (name, other) == ("objective", "lower bound")
    assert (objective >= bound - 1e-9).all()
    assert objective[-1] == pytest.approx(robust.objective_)
    drawn(ConvergenceDisplay.from_estimator(robust).plot())
    paper = RobustFairPCA(2, solver="subgradient", n_init=2, max_iter=30).fit(X, sensitive_features=groups)
    assert len(ConvergenceDisplay.from_estimator(paper).curves) == 3  # two random starts and one from PCA
    drawn(ConvergenceDisplay.from_estimator(paper).plot())
    records = []
    MMDFairPCA(2, tolerance=0.05, callback=records.append).fit(X[::3], sensitive_features=groups[::3])
    drawn(ConvergenceDisplay.from_records(records).plot())
    with pytest.raises(ValueError, match="keeps no history_"):
        ConvergenceDisplay.from_estimator(FairPCA(2).fit(X, sensitive_features=groups))


def test_axes_are_named_after_the_chosen_components(two_groups):
    X, groups = two_groups
    estimator = FairPCA(3).fit(X, sensitive_features=groups)
    for options in ({}, {"X": X, "sensitive_features": groups}):
        ax = drawn(BiplotDisplay.from_estimator(estimator, components=(1, 2), **options).plot())
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("component 2", "component 3")


@pytest.mark.parametrize("components", [(5, 6), (0, 5), (-1, 0), (), (0.5, 1), (0, 1, 2)])
def test_components_that_do_not_exist_are_refused(two_groups, components):
    X, groups = two_groups
    estimator = FairPCA(3).fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match="components="):
        ProjectionDisplay.from_estimator(estimator, X, sensitive_features=groups, components=components)
    with pytest.raises(ValueError, match="components="):
        BiplotDisplay.from_estimator(estimator, components=components)


def test_group_errors_stop_at_the_number_of_features(two_groups):
    X, groups = two_groups
    display = GroupErrorDisplay.from_estimator(PCA(), X[:, :4], sensitive_features=groups)
    assert display.dimensions.tolist() == [1, 2, 3, 4]


def test_ordinary_pca_is_dashed_as_in_the_report(two_groups):
    X, groups = two_groups
    found = compare(X, sensitive_features=groups, n_components=[1, 2], methods=["PCA", "FairPCA"], n_permutations=19)
    display = GroupErrorDisplay.from_comparison(found, of="corrected_loss")
    ax = drawn(display.plot())
    assert [line.get_linestyle() for line in display.lines_] == ["--", "--", "-", "-"]
    assert "corrected loss on new rows" in ax.get_ylabel()
    assert display.values["PCA"][0, 0] == found["PCA", 1].corrected_loss.by_group["a"].value


def test_a_method_that_could_not_be_fitted_leaves_a_gap(two_groups):
    X, groups = two_groups
    p = X.shape[1]
    found = compare(X, sensitive_features=groups, n_components=[2, p], methods=["PCA", "ParityPCA"])
    display = GroupErrorDisplay.from_comparison(found)
    assert np.isfinite(display.values["ParityPCA"][0]).all()
    assert np.isnan(display.values["ParityPCA"][1]).all()
    assert np.isfinite(display.values["PCA"]).all()
    drawn(display.plot())
    with pytest.raises(ValueError, match="methods='FairPCA' is unknown"):
        GroupErrorDisplay.from_comparison(found, methods=["FairPCA"])
    with pytest.raises(ValueError, match="of='x' is unknown"):
        GroupErrorDisplay.from_comparison(found, of="x")


def test_errors_name_the_argument(two_groups):
    X, groups = two_groups
    with pytest.raises(ValueError, match="of='x' is unknown"):
        GroupErrorDisplay.from_estimator(PCA(), X, sensitive_features=groups, of="x")
    for draw in (CommunalityDisplay.from_estimator, BiplotDisplay.from_estimator):
        with pytest.raises(NotFittedError, match="estimator is a FairPCA that is not fitted"):
            draw(FairPCA())
    with pytest.raises(ValueError, match="estimator is an empty dict"):
        CommunalityDisplay.from_estimator({})
    with pytest.raises(ValueError, match="estimator is an empty dict"):
        GroupErrorDisplay.from_estimator({}, X, sensitive_features=groups)
    kernel = KernelParityPCA().fit(X, sensitive_features=groups)
    with pytest.raises(ValueError, match="estimator is a KernelParityPCA, which has no components_"):
        FrontierDisplay.from_estimator(kernel, X, sensitive_features=groups)
    with pytest.raises(ValueError, match="estimator is a KernelParityPCA, which has no components_"):
        CommunalityDisplay.from_estimator(kernel)
