"""The rows of a comparison, split and summarised once for all methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_array

from fairpca._labels import label_texts
from fairpca._validation import Groups, seed_from
from fairpca.estimators._linear_projection import label_array
from fairpca.inference import LossTest, loss_test
from fairpca.inference._checks import check_clusters, in_memory_rows
from fairpca.inference._divisions import Division
from fairpca.inference._fitting import needs_moments_only
from fairpca.inference._noise import Noise
from fairpca.inference._study import Evidence
from fairpca.inference._study import Study as Evaluations
from fairpca.linalg import threads_for, top_eigenpairs
from fairpca.metrics import GroupValues
from fairpca.metrics._components import fitted_projection
from fairpca.model_selection._held_out import HeldOutRows, sample_rows
from fairpca.model_selection.methods import Method
from fairpca.moments import GroupMoments
from fairpca.moments._accumulate import accumulate
from fairpca.moments._folds import FoldMoments
from fairpca.problems.evaluation import ROUNDING, Evaluation, captured_variances

__all__ = ["Study"]


class Study:
    """Rows, groups and label, and their divisions into folds and into training and held-out rows.

    ``moments`` describe all rows; if they were given, X is a random sample of these rows.
    """

    def __init__(
        self,
        X: Any,
        sensitive_features: Any,
        y: Any,
        *,
        clusters: Any,
        n_folds: int,
        test_size: float,
        seed: Any,
        moments: GroupMoments | None,
        sample_weight: Any = None,
    ) -> None:
        if moments is not None and sample_weight is not None:
            raise ValueError("sample_weight cannot be combined with moments, which describe rows of unknown weights.")
        rows = in_memory_rows(check_array(X, dtype=np.float64), sensitive_features, sample_weight)
        self.X, self.groups, self.weights = rows.X, rows.groups, rows.weights
        self.seed = int(seed) if isinstance(seed, int | np.integer) else seed_from(seed)
        self.y = rows.select(_check_label(y, rows.n_given))
        self.labels = label_array(self.groups.labels)[self.groups.codes]
        self.clusters, self.sampled = check_clusters(clusters, rows), moments is not None
        if moments is not None:
            _check_sample_of(moments, self.groups, self.X.shape[1])
        self.folds = Evaluations(rows, self._folds_for(n_folds), clusters, seed_from(self.seed), moments)
        self.moments = self.folds.all_moments
        self.row_counts = tuple(self.folds.counts.values())
        self.n_rows = sum(self.row_counts)
        self.held_out_rows = HeldOutRows(rows, self.y, self.clusters, test_size=test_size, seed=self.seed)
        self._tested = np.isin(np.arange(len(self.X)), self.held_out_rows.test)
        self._held_out = self._division()

    def _division(self) -> Division:
        """The held-out rows as fold 0, the training rows as fold 1."""
        k = len(self.groups)
        cells = Groups(tuple(range(2 * k)), self.groups.codes * 2 + ~self._tested)
        numbers = np.arange(2 * k)
        moments = accumulate(self.X, cells, self.weights)
        folds = FoldMoments(moments, numbers // 2, numbers % 2, self.groups.labels)
        return Division(folds, self.groups.labels, [0], len(self.X) / len(self.held_out_rows.test))

    def _folds_for(self, n_folds: int) -> int:
        """At most as many folds as the smallest group has rows, or clusters."""
        pairs = (
            self.groups.codes
            if self.clusters is None
            else np.unique(np.column_stack([self.groups.codes, self.clusters]), axis=0)[:, 0]
        )
        return max(2, min(n_folds, int(np.bincount(pairs).min())))

    def dimensions_to_judge(self, numbers: Sequence[int]) -> list[int]:
        """Those with which ordinary PCA does not keep everything, or the first one."""
        left_out = np.cumsum(np.linalg.eigvalsh(self.moments.pooled_covariance()))
        rank = int(np.count_nonzero(left_out > ROUNDING * left_out[-1]))
        return [d for d in numbers if d < rank] or list(numbers)[:1]

    def prepare(self, n_components: int) -> None:
        """Find the groups' own components once, before methods are evaluated in parallel."""
        with threads_for(self.X.size * self.X.shape[1]):
            for division in (*self.folds.divisions, self._held_out):
                division.prepare(n_components)

    def fit(self, method: Method, d: int, previous: Any = None) -> tuple[Any, int]:
        """The estimator whose values on all rows are reported, and how many rows it was fitted to.

        A method that is slow on many rows is fitted to a sample of the training rows instead of all rows, and may start
        from the ``previous`` fit, with fewer components, to the same rows.
        """
        if method.max_rows is None:
            estimator = method.fit(d, self.seed, self.X, self.labels, self.moments, self.weights)
            return estimator, self.n_rows if needs_moments_only(estimator) else len(self.X)
        rows = sample_rows(self.held_out_rows.train, self.groups.codes, method.max_rows, self.seed)
        return self._fit_some(method, d, rows, previous), len(rows)

    def fit_training_rows(self, method: Method, d: int) -> Any:
        """The method fitted to the training rows only."""
        return self._fit_some(method, d, self.held_out_rows.train)

    def _fit_some(self, method: Method, d: int, rows: np.ndarray, previous: Any = None) -> Any:
        given, weights = (self.X[rows], self.labels[rows]), self.held_out_rows.weights_of(rows)
        if method.extend is not None and previous is not None:
            return method.extend(method.make(d, self.seed), previous.components_, *given, weights)
        return method.fit(d, self.seed, *given, self._held_out.folds.training(0), weights)

    def evidence(self, method: Method, d: int, whole: Any, partial: Any) -> Evidence:
        """Values on new rows: by cross-validation where a fit needs moments only, else on the one held-out part."""
        estimator = method.make(d, self.seed)
        if needs_moments_only(estimator):
            return self.folds.evidence(method.name, whole, self.folds.fit_without_folds(estimator))
        return self.folds.evidence(method.name, whole, [[partial]], (self._held_out, self._tested))

    def test(self, dimensions: list[int], n_permutations: int) -> LossTest:
        """Permutation test of ordinary PCA, for all numbers of components together."""
        return loss_test(
            self.X,
            sensitive_features=self.groups,
            n_components=dimensions,
            n_permutations=n_permutations,
            clusters=self.clusters,
            sample_weight=self.weights,
            random_state=self.seed,
        )

    def expected_losses(self, test: LossTest | None, dimensions: Sequence[int]) -> dict[int, dict[Any, float]]:
        """Average losses of random groups of these sizes: from the test, or in closed form if X is a sample."""
        if test is not None and not self.sampled:
            return {d: {label: one.expected for label, one in test[d].by_group.items()} for d in dimensions}
        noise, counts = Noise.from_rows(self.X, self.folds.divisions[0].folds.whole, self.weights), self.folds.counts
        return {
            d: {label: noise.expected_loss(count, d, self.n_rows) for label, count in counts.items()}
            for d in dimensions
        }

    def ordinary_losses(self, d: int) -> GroupValues:
        """Losses of ordinary PCA in the sample."""
        basis = top_eigenpairs(self.moments.pooled_covariance(), d)[1]
        losses = Evaluation(self.moments.second_moments(), basis).losses
        return GroupValues(dict(zip(self.groups.labels, losses, strict=True)), math.nan)

    def explained_variance(self, estimator: Any) -> float:
        """Explained variance ratio about the mean of all rows, whichever rows the estimator was fitted to."""
        covariance = self.moments.pooled_covariance()
        total = float(np.trace(covariance))
        captured = captured_variances(covariance[None], *fitted_projection(estimator))[0]
        return float(captured) / total if total > 0 else 1.0


def _check_label(y: Any, n_samples: int) -> np.ndarray | None:
    if y is None:
        return None
    y = np.asarray(y)
    if y.shape != (n_samples,):
        raise ValueError(f"y has shape {y.shape}, but X has {n_samples} rows: give one label per row.")
    return y


def _check_sample_of(moments: GroupMoments, groups: Groups, n_features: int) -> None:
    if moments.labels != groups.labels or moments.n_features != n_features:
        raise ValueError(
            f"moments describe the groups {label_texts(moments.labels)} and {moments.n_features} features, but X and "
            f"sensitive_features the groups {label_texts(groups.labels)} and {n_features}: X must be a sample of the "
            "same rows."
        )
