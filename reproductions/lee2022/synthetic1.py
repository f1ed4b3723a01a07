"""Figure 1 of Lee et al. (2022): two groups with equal means and covariances, but different distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from fairpca.datasets import make_same_moments
from fairpca.metrics import median_bandwidth, mmd2_test
from fairpca.plotting import ProjectionDisplay
from reproductions._outcome import Claim, Drawing, Table
from reproductions.lee2022.protocol import Method, project, variance_share
from reproductions.lee2022.running import Job

__all__ = ["Sample", "figure_1", "figure_1_jobs", "project_sample"]

#: The paper's tolerance, and the number of samples for ours, since a single sample says little.
_TOLERANCE, _SAMPLES = 1e-5, 10
METHODS = (Method("PCA"), Method("FPCA", 0.0), Method("MbF-PCA", _TOLERANCE))


@dataclass(frozen=True)
class Sample:
    """One sample: scores in the plane, share of variance, MMD^2 and its mean over random groups, by method."""

    groups: np.ndarray
    scores: dict[str, np.ndarray]
    variance: dict[str, float]
    mmd2: dict[str, float]
    random_level: dict[str, float]


def project_sample(seed: int, methods: Sequence[Method] = METHODS) -> Sample:
    """150 rows per group, projected to the plane by each method."""
    X, groups = make_same_moments(300, random_state=seed)
    sigma = median_bandwidth(PCA(2).fit_transform(X))
    sample = Sample(groups, {}, {}, {}, {})
    for method in methods:
        components, _ = project(method, X, groups, 2)
        scores = (X - X.mean(axis=0)) @ components.T
        test = mmd2_test(scores, sensitive_features=groups, bandwidth=sigma, n_permutations=1)
        sample.scores[method.name] = scores
        sample.variance[method.name] = variance_share(X, components)
        sample.mmd2[method.name], sample.random_level[method.name] = test.mmd2, test.mean
    return sample


def figure_1_jobs(*, quick: bool) -> list[Job]:
    return [Job("Figure 1", project_sample, (seed,)) for seed in range(2 if quick else _SAMPLES)]


def figure_1(samples: Sequence[Sample]) -> tuple[Table, Drawing, list[Claim]]:
    """Over all samples; the drawing shows two."""
    columns = ("method", "%Var, median", "MMD^2, median", "smallest", "largest", "MMD^2 / random level, median")
    rows = []
    for name in samples[0].scores:
        values = [sample.mmd2[name] for sample in samples]
        share = 100 * float(np.median([sample.variance[name] for sample in samples]))
        rows.append([name, share, *map(float, np.quantile(values, (0.5, 0, 1))), _level_ratio(samples, name)])
    note = f"{len(samples)} samples of 300 rows. Random level: mean of MMD^2 over all divisions into such groups."
    table = Table("figure_1", "Figure 1: equal means and covariances, different distributions", columns, rows, note)
    title = "Figure 1: the samples in which FPCA leaves the least and the most of the difference"
    drawing = Drawing("figure_1", title, lambda figure: _draw(figure, samples), (11.0, 6.0))
    return table, drawing, _claims(samples)


def _level_ratio(samples: Sequence[Sample], name: str) -> float:
    return float(np.median([sample.mmd2[name] / sample.random_level[name] for sample in samples]))


def _claims(samples: Sequence[Sample]) -> list[Claim]:
    """The paper's statements: PCA and FPCA leave the groups apart, MbF-PCA merges them."""
    pca, fpca, mbf = (method.name for method in METHODS)
    what = "MMD^2 / random level, median of the samples: "
    varies = (
        "with equal distributions of the first two moments, FPCA removes the chance difference of two sample means: "
        "where that points along the clusters they merge, so its result varies from sample to sample"
    )
    return [
        Claim("Figure 1", what + "PCA keeps the groups apart", _level_ratio(samples, pca), 1.0, 0.0, "at least"),
        Claim("Figure 1", what + "so does FPCA", _level_ratio(samples, fpca), 1.0, 0.0, "at least", False, varies),
        Claim("Figure 1", what + "MbF-PCA merges them", _level_ratio(samples, mbf), 1.0, 0.0, "at most"),
    ]


def _draw(figure: Any, samples: Sequence[Sample]) -> None:
    """The two samples in which FPCA leaves the least and the most of the difference."""
    name = METHODS[1].name
    shown = sorted(range(len(samples)), key=lambda i: samples[i].mmd2[name])
    lines = figure.subplots(2, len(METHODS), sharex=True, sharey=True)
    for line, number in zip(lines, (shown[0], shown[-1]), strict=True):
        sample = samples[number]
        for ax, (method, scores) in zip(line, sample.scores.items(), strict=True):
            ProjectionDisplay(scores, sample.groups, ("normal", "mixture")).plot(ax)
            for means in ax.collections[1::2]:  # all in the middle, over the rows
                means.set_visible(False)
            ax.set_title(f"{method}, sample {number}: MMD² {sample.mmd2[method]:.2g}", fontsize="medium")
            ax.get_legend().remove()
            ax.label_outer()
    handles, labels = lines[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, markerscale=2)
