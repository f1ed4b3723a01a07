"""How well a classifier tells the groups apart from a representation."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import check_array, check_random_state

from fairpca._validation import Groups, check_choice, check_groups, check_number, check_several_groups

__all__ = ["adversary_gap", "permuted_adversary_gaps"]

_FAMILIES = ("linear", "rbf")
_EVALUATIONS = ("held_out", "in_sample")
#: The margins of a support vector machine are at +-1; scores that differ by less are its solver's rounding.
_SCORE_ROUNDING = 1e-6
#: A coordinate this much narrower than the widest is the rounding of a zero; standardised, it would count in full.
_COORDINATE_ROUNDING = 1e-10
#: Share of the rows on which each of the splits is evaluated.
_TEST_SHARE = 0.3


def adversary_gap(
    Z: Any,
    sensitive_features: Any,
    *,
    family: Any = "linear",
    evaluation: str = "held_out",
    train: tuple[Any, Any] | None = None,
    n_splits: int = 5,
    random_state: Any = 0,
) -> float:
    """How far a classifier trained to tell the groups apart separates them: Delta_A of Olfat and Aswani (2019).

    A classifier of the family is trained to predict the group from the representation Z. With F_a the empirical
    distribution function of its score in group a, the result is ``max_t |F_a(t) - F_b(t)|``: 0 where the score
    says nothing about the group, 1 where a threshold separates the groups. For more than two groups it is the
    largest over all pairs, each with a classifier of its own.

    Parameters
    ----------
    Z : array-like of shape (n_samples, n_components)
        The representation of the rows on which the classifier is judged.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The groups.
    family : {"linear", "rbf"} or classifier, default="linear"
        Support vector machines on standardised coordinates, both groups weighing the same: ``LinearSVC`` or ``SVC``
        with the RBF kernel. Or any scikit-learn classifier with a ``decision_function`` or ``predict_proba``.
    evaluation : {"held_out", "in_sample"}, default="held_out"
        "held_out" averages over random splits, each trained on 70 % of the rows and judged on the rest. "in_sample"
        trains and judges on the same rows, as in equation (3) of Lee et al. (2022); with a flexible family it is
        large for any Z.
    train : tuple (Z, sensitive_features), optional
        Other rows to train on, for example those on which the projection was fitted. Then all rows of ``Z`` are held
        out and ``evaluation`` does not matter.
    n_splits : int, default=5
        Splits of the held-out evaluation.
    random_state : int, RandomState or None, default=0

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    permuted_adversary_gaps : The level that groups drawn at random reach.

    Notes
    -----
    On n_a and n_b held-out rows even a score that knows nothing reaches about ``0.87 sqrt(1 / n_a + 1 / n_b)``.

    Where two groups have equal means on the training rows, the best linear rule under a smooth convex loss, such as
    the squared hinge of ``LinearSVC``, is the constant one, and the gap is 0. That is what parity of means promises.
    It does not say that no direction separates the groups: the plain hinge loss, ``SVC(kernel="linear")``, can use
    other differences than that of the means, and so can the RBF family.

    References
    ----------
    Olfat and Aswani (2019). Convex Formulations for Fair Principal Component Analysis. AAAI.

    Lee, Kim, Olfat, Hasegawa-Johnson and Yoo (2022). Fast and Efficient MMD-Based Fair PCA via Optimization over
    Stiefel Manifold. AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import adversary_gap
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat(["a", "b"], 200)
    >>> Z = rng.normal(size=(400, 2))
    >>> Z[:200, 0] += 3
    >>> adversary_gap(Z, groups) > 0.8
    True
    >>> adversary_gap(Z[:, 1:], groups) < 0.25
    True
    """
    classifier = _classifier(family)
    check_choice("evaluation", evaluation, _EVALUATIONS)
    check_number("n_splits", n_splits, at_least=1, integer=True)
    judged = _check(Z, sensitive_features)
    others = judged if evaluation == "in_sample" else None
    if train is not None:
        others = _check_train(train, judged)
    gaps = []
    for pair in combinations(range(len(judged[1])), 2):
        part = _of_pair(*judged, pair)
        if others is None:
            gaps.append(_over_splits(classifier, *part, n_splits, random_state))
        else:
            gaps.append(_gap(classifier, _of_pair(*others, pair), part))
    return max(gaps)


def permuted_adversary_gaps(
    Z: Any,
    sensitive_features: Any,
    *,
    n_permutations: int = 20,
    train: tuple[Any, Any] | None = None,
    random_state: Any = 0,
    **options: Any,
) -> np.ndarray:
    """:func:`adversary_gap` with the groups shuffled among the rows: the level that chance alone reaches.

    Parameters
    ----------
    Z, sensitive_features, train
        As in :func:`adversary_gap`; the groups of both sets of rows are shuffled, each within its set.
    n_permutations : int, default=20
    random_state : int, RandomState or None, default=0
    **options
        The other arguments of :func:`adversary_gap`.

    Returns
    -------
    ndarray of shape (n_permutations,)

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.metrics import adversary_gap, permuted_adversary_gaps
    >>> rng = np.random.default_rng(0)
    >>> groups = np.repeat([0, 1], 150)
    >>> Z = rng.normal(size=(300, 2)) + groups[:, None]
    >>> bool(adversary_gap(Z, groups) > permuted_adversary_gaps(Z, groups).max())
    True
    """
    rng = check_random_state(random_state)
    check_number("n_permutations", n_permutations, at_least=1, integer=True)
    judged = _check(Z, sensitive_features)
    others = None if train is None else _check_train(train, judged)
    gaps = np.empty(n_permutations)
    for i in range(n_permutations):
        shuffled = None if others is None else (others[0], rng.permutation(others[1].codes))
        gaps[i] = adversary_gap(Z, rng.permutation(judged[1].codes), train=shuffled, random_state=rng, **options)
    return gaps


def _classifier(family: Any) -> Any:
    if not isinstance(family, str) and hasattr(family, "fit"):
        return family
    if check_choice("family", family, _FAMILIES) == "linear":
        machine = LinearSVC(class_weight="balanced", dual=False, random_state=0)  # draws a number it does not use
    else:
        machine = SVC(kernel="rbf", class_weight="balanced")
    return make_pipeline(StandardScaler(), machine)


def _check(Z: Any, sensitive_features: Any) -> tuple[np.ndarray, Groups]:
    Z = check_array(Z, dtype=[np.float64, np.float32])
    groups = check_groups(sensitive_features, len(Z))
    check_several_groups(groups.labels, len(Z))
    return Z, groups


def _check_train(train: Any, judged: tuple[np.ndarray, Groups]) -> tuple[np.ndarray, Groups]:
    if not isinstance(train, tuple | list) or len(train) != 2:
        raise TypeError("train must be a pair (Z, sensitive_features) of other rows and their groups.")
    Z, groups = _check(*train)
    if Z.shape[1] != judged[0].shape[1]:
        raise ValueError(
            f"train holds rows with {Z.shape[1]} columns, but Z has {judged[0].shape[1]}; both must be scores of the "
            "same projection."
        )
    if groups.labels != judged[1].labels:
        raise ValueError(
            f"train holds the groups {list(groups.labels)}, but sensitive_features holds {list(judged[1].labels)}; "
            "both sets of rows must have the same groups."
        )
    return Z, groups


def _of_pair(Z: np.ndarray, groups: Groups, pair: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """The rows of two groups, and which of them belong to the second."""
    rows = np.isin(groups.codes, pair)
    return Z[rows], groups.codes[rows] == pair[1]


def _over_splits(classifier: Any, Z: np.ndarray, second: np.ndarray, n_splits: int, random_state: Any) -> float:
    smallest = min(second.sum(), (~second).sum())
    if smallest < 2:
        raise ValueError(
            "A group in sensitive_features has a single row, which cannot be both trained on and judged; use "
            "evaluation='in_sample', or merge small groups."
        )
    splitter = StratifiedShuffleSplit(n_splits, test_size=_TEST_SHARE, random_state=random_state)
    return float(
        np.mean(
            [
                _gap(classifier, (Z[fitted], second[fitted]), (Z[held_out], second[held_out]))
                for fitted, held_out in splitter.split(Z, second)
            ]
        )
    )


def _gap(classifier: Any, train: tuple[np.ndarray, np.ndarray], judged: tuple[np.ndarray, np.ndarray]) -> float:
    Z, second = judged
    spread = train[0].std(axis=0)
    kept = spread > _COORDINATE_ROUNDING * spread.max()
    if not kept.any():
        return 0.0
    fitted = clone(classifier).fit(train[0][:, kept], train[1])
    Z = Z[:, kept]
    scored = hasattr(fitted, "decision_function")
    scores = fitted.decision_function(Z) if scored else fitted.predict_proba(Z)[:, 1]
    return _largest_difference(scores[second], scores[~second])


def _largest_difference(first: np.ndarray, second: np.ndarray) -> float:
    """``max_t |F_1(t) - F_2(t)|`` of two samples (the Kolmogorov-Smirnov distance)."""
    thresholds = np.concatenate([first, second])
    if np.ptp(thresholds) <= _SCORE_ROUNDING:
        return 0.0
    thresholds.sort()
    first_share = np.searchsorted(np.sort(first), thresholds, side="right") / len(first)
    second_share = np.searchsorted(np.sort(second), thresholds, side="right") / len(second)
    return float(np.abs(first_share - second_share).max())
