"""How well a classifier predicts the group from a representation."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.model_selection import StratifiedShuffleSplit

from fairpca._validation import Groups, check_choice, check_number, generator, legacy_generator, seed_from
from fairpca.metrics._half_space import HalfSpace
from fairpca.metrics._reading import Rows, check_rows, check_train, train_and_score
from fairpca.metrics.readability import FAMILIES, make_reader

__all__ = ["adversary_gap", "adversary_gap_and_draws"]

#: The margins of a support vector machine are at +-1; scores that differ by less are its solver's rounding.
_SCORE_ROUNDING = 1e-6
#: Share of test rows in each split.
_TEST_SHARE = 0.3


def adversary_gap(
    X: Any,
    *,
    sensitive_features: Any,
    family: Any = "linear",
    evaluation: str = "held_out",
    train: tuple[Any, Any] | None = None,
    n_splits: int = 5,
    random_state: Any = None,
) -> float:
    """How well a rule trained to distinguish the groups separates them: Delta_A of Olfat and Aswani (2019).

    ``sup |P(h(z) <= t | a) - P(h(z) <= t | b)|`` over the functions h of a family and thresholds t: 0 if no function
    in the family distinguishes the groups, 1 if one separates them. The rule is found on training rows and evaluated on
    test rows. For more than two groups, the result is the largest over all pairs, each with its own rule.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_components)
        The representation of the rows on which the classifier is evaluated.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The groups.
    family : {"linear", "rbf", "boosting"} or classifier, default="linear"
        "linear" searches directions and thresholds for the half-space whose shares of the two groups differ most.
        "rbf" and "boosting" train a classifier, both as in :func:`readability`; so does any scikit-learn classifier
        with a ``decision_function`` or ``predict_proba``. The result is the largest difference between the groups'
        empirical distribution functions of their score on the test rows.
    evaluation : {"held_out", "in_sample"}, default="held_out"
        "held_out" averages over random splits, each trained on 70 % of the rows and tested on the rest. "in_sample"
        trains and tests on the same rows, as in equation (3) of Lee et al. (2022); with a flexible family it is
        large for any X.
    train : tuple (X, sensitive_features), optional
        Separate rows to train on, for example those on which the projection was fitted. Then all rows of ``X`` are
        held out and ``evaluation`` is ignored.
    n_splits : int, default=5
        Splits of the held-out evaluation.
    random_state : int, RandomState or None, default=None
        None is a fixed seed.

    Returns
    -------
    float
        Between 0 and 1.

    See Also
    --------
    readability : A stronger classifier, with a confidence interval.

    Notes
    -----
    On n_a and n_b held-out rows even a random score reaches about ``0.87 sqrt(1 / n_a + 1 / n_b)``, and a
    rule whose threshold was chosen on the training rows ``0.20 sqrt(1 / n_a + 1 / n_b)`` on average.

    A linear support vector machine cannot replace the search over half-spaces: if two groups have equal means on the
    training rows, the best linear function under a smooth convex loss is constant, whatever else differs, and its gap
    of 0 is not informative. See :func:`readability` for a stronger classifier and a confidence interval.

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
    >>> adversary_gap(Z, sensitive_features=groups) > 0.8
    True
    >>> adversary_gap(Z[:, 1:], sensitive_features=groups) < 0.25
    True
    """
    if isinstance(family, str) or not hasattr(family, "fit"):
        family = make_reader(check_choice("family", family, FAMILIES), seed_from(random_state))
    if isinstance(family, HalfSpace) and evaluation == "in_sample" and train is None:
        family.set_params(validated=False)  # the largest gap on the training rows is wanted
    check_choice("evaluation", evaluation, ("held_out", "in_sample"))
    check_number("n_splits", n_splits, at_least=1, integer=True)
    judged = check_rows(X, sensitive_features)
    pairs = list(combinations(range(len(judged[1])), 2))
    if train is None and evaluation == "held_out":
        return max(_over_splits(family, judged, pair, n_splits, random_state) for pair in pairs)
    others = judged if train is None else check_train(train, judged)
    return max(_Adversary(family, others, judged[0], pair).gap(judged[1].codes) for pair in pairs)


def adversary_gap_and_draws(
    Z: Any, sensitive_features: Any, *, train: tuple[Any, Any], n_permutations: int, random_state: Any
) -> tuple[float, np.ndarray]:
    """:func:`adversary_gap` of the linear rule trained on ``train``, and its gaps with the groups of Z shuffled.

    The rule is trained once for both: given the rule, all orders of the groups are equally likely if they are random.
    """
    judged, rng = check_rows(Z, sensitive_features), generator(random_state, "adversary")
    rule, codes = make_reader("linear", seed_from(random_state)), judged[1].codes
    adversaries = [
        _Adversary(rule, check_train(train, judged), judged[0], pair) for pair in combinations(range(len(judged[1])), 2)
    ]
    shuffled = (rng.permutation(codes) for _ in range(n_permutations))
    gaps = [max(adversary.gap(draw) for adversary in adversaries) for draw in (codes, *shuffled)]
    return gaps[0], np.array(gaps[1:])


class _Adversary:
    """A classifier trained to tell two groups apart on some rows, and its scores of others."""

    def __init__(self, classifier: Any, train: Rows, Z: np.ndarray, pair: tuple[int, int]) -> None:
        self._pair, self._is_rule = pair, isinstance(classifier, HalfSpace)
        self._scores = train_and_score(clone(classifier), train, pair, Z)

    def gap(self, codes: np.ndarray) -> float:
        """The gap on the test rows, with these groups."""
        first, second = (self._scores[codes == a] for a in self._pair)
        if self._is_rule:
            return max(float(np.mean(second > 0) - np.mean(first > 0)), 0.0)
        if np.ptp(self._scores) <= _SCORE_ROUNDING:
            return 0.0
        return float(ks_2samp(first, second, method="asymp").statistic)


def _over_splits(classifier: Any, rows: Rows, pair: tuple[int, int], n_splits: int, random_state: Any) -> float:
    """The mean over random splits of the rows of two groups."""
    Z, codes = (part[np.isin(rows[1].codes, pair)] for part in (rows[0], rows[1].codes))
    if min(np.count_nonzero(codes == a) for a in pair) < 2:
        raise ValueError(
            "A group in sensitive_features has a single row, which cannot be used for both training and testing; use "
            "evaluation='in_sample', or merge small groups."
        )
    splitter = StratifiedShuffleSplit(n_splits, test_size=_TEST_SHARE, random_state=legacy_generator(random_state))
    gaps = []
    for fitted, held_out in splitter.split(Z, codes):
        train = Z[fitted], Groups(rows[1].labels, codes[fitted])
        gaps.append(_Adversary(classifier, train, Z[held_out], pair).gap(codes[held_out]))
    return float(np.mean(gaps))
