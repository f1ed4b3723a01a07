"""The methods that a comparison offers by name; to add one, add an entry to ``METHODS``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA

from fairpca.estimators import AnchorPCA, FairPCA, LeacePCA, MMDFairPCA, ParityPCA, RobustFairPCA
from fairpca.estimators._mmd_extended import fit_extended
from fairpca.inference._fitting import fit_rows, fit_to_moments, needs_moments_only
from fairpca.moments import GroupMoments

__all__ = ["METHODS", "Method", "choose_methods"]


@dataclass(frozen=True)
class Method:
    """A way to find components.

    Attributes
    ----------
    name : str
    family : {"reference", "balanced quality", "parity"}
    aim : str
        What it does, in a sentence for readers who do not know the method.
    make : callable
        Returns an unfitted estimator, given the number of components and the random seed.
    max_rows : int or None
        For methods whose time grows quickly with the number of rows: a comparison fits them to a sample of this size.
    on_request : bool
        Whether a comparison includes it only if it is named.
    objective : str
        The quantity that it optimises, which a certificate is about.
    extend : callable or None
        Fits the estimator, given the components of a fit with fewer of them, the rows, their groups and weights.

    See Also
    --------
    compare : Takes methods by name, or estimators of your own.

    Examples
    --------
    >>> from fairpca.model_selection import METHODS
    >>> METHODS["FairPCA"].family
    'balanced quality'
    >>> METHODS["FairPCA"].make(3, 0)
    FairPCA(n_components=3, random_state=0)
    """

    name: str
    family: str
    aim: str
    make: Callable[[int, int], Any]
    max_rows: int | None = None
    on_request: bool = False
    objective: str = "whatever its documentation states."
    extend: Callable[[Any, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None], Any] | None = None

    def fit(
        self,
        n_components: int,
        seed: int,
        X: np.ndarray,
        groups: np.ndarray,
        moments: GroupMoments,
        weights: np.ndarray | None = None,
    ) -> Any:
        """A fitted estimator; ``moments`` describe the rows of X, or all the rows of which X is a sample.

        In the latter case, estimators that need moments only are thereby fitted to all rows.
        """
        estimator = self.make(n_components, seed)
        if needs_moments_only(estimator):
            return fit_to_moments(estimator, moments)
        return fit_rows(estimator, X, None, groups, weights)


def _pca(n_components: int, seed: int) -> PCA:
    return PCA(n_components, svd_solver="full")


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "PCA",
            "reference",
            "Ordinary PCA: the least error over all rows together; it does not use the groups.",
            _pca,
            objective="the mean squared error of all rows together, as small as possible.",
        ),
        Method(
            "FairPCA",
            "balanced quality",
            "Makes the largest loss of a group as small as possible, where the loss is the error a group has only "
            "because it shares the components with the others.",
            lambda d, seed: FairPCA(d, random_state=seed),
            objective="the largest loss of a group in these rows, as small as possible; not the errors, the total "
            "error or what the scores reveal.",
        ),
        Method(
            "FairPCA-relative",
            "balanced quality",
            "FairPCA with each group's loss as a share of its own variance, so that a group that varies more does not "
            "count more.",
            lambda d, seed: FairPCA(d, relative=True, random_state=seed),
            on_request=True,
            objective="the largest loss of a group as a share of its own variance in these rows, as small as possible; "
            "not the errors, the total error or what the scores reveal.",
        ),
        Method(
            "FairPCA-mean",
            "balanced quality",
            "Every group counts the same, whatever its size: the least mean of the groups' errors.",
            lambda d, seed: FairPCA(d, criterion="mean", random_state=seed),
            on_request=True,
            objective="the mean of the groups' errors in these rows, as small as possible; not the largest of them.",
        ),
        Method(
            "AnchorPCA",
            "balanced quality",
            "Keeps the directions that are leading components of most groups, each group counting the same.",
            lambda d, seed: AnchorPCA(d),
            on_request=True,
            objective="the agreement of the components with those of each group alone, as large as possible; not the "
            "errors or losses.",
        ),
        Method(
            "RobustFairPCA",
            "balanced quality",
            "Trades the total error against the difference between the groups' errors, with a margin for groups that "
            "are known from few rows.",
            lambda d, seed: RobustFairPCA(d, random_state=seed),
            objective="the total error plus the penalty times the difference between the groups' errors, in the worst "
            "case within the radius; not the losses.",
        ),
        Method(
            "ParityPCA",
            "parity",
            "Keeps only directions along which the groups have the same mean, so that no average difference between "
            "them is left in the scores.",
            lambda d, seed: ParityPCA(d, random_state=seed),
            objective="the variance kept among projections in which the groups have equal means; other differences "
            "between their distributions may remain.",
        ),
        Method(
            "MMDFairPCA",
            "parity",
            "Keeps as much variance as it can while the groups' whole distributions of scores stay alike, within a "
            "tolerance on MMD².",
            lambda d, seed: MMDFairPCA(d, random_state=seed),
            max_rows=700,
            objective="the variance kept among projections whose MMD² between groups is within the tolerance, on the "
            "rows that it was fitted to.",
            extend=fit_extended,
        ),
        Method(
            "LeacePCA",
            "parity",
            "Changes the rows as little as possible so that no linear rule tells the groups apart, then applies "
            "ordinary PCA. The map is not an orthogonal projection, and keeps at least as much of the variance of "
            "these rows as ParityPCA.",
            lambda d, seed: LeacePCA(d),
            on_request=True,
            objective="the variance of the erased rows that is kept, on the rows that it was fitted to; not what a "
            "classifier that is not linear can tell from the scores.",
        ),
    )
}


def choose_methods(methods: Iterable[str] | Mapping[str, Any] | None) -> list[Method]:
    """Methods by name (None: all but those on request), or from a mapping of names to the caller's own estimators."""
    if methods is None:
        return [method for method in METHODS.values() if not method.on_request]
    if isinstance(methods, Mapping):
        return [_own_method(str(name), estimator) for name, estimator in methods.items()]
    names = [methods] if isinstance(methods, str) else list(methods)
    known = {name.lower(): method for name, method in METHODS.items()}
    for name in names:
        if str(name).lower() not in known:
            raise ValueError(f"methods: {name!r} is unknown; choose from {', '.join(METHODS)}.")
    if not names:
        raise ValueError(f"methods is empty; choose from {', '.join(METHODS)}.")
    return [known[name] for name in dict.fromkeys(str(name).lower() for name in names)]


def _own_method(name: str, estimator: Any) -> Method:
    def make(n_components: int, seed: int) -> Any:
        return clone(estimator).set_params(n_components=n_components)

    aim = f"{type(estimator).__name__}, with parameters of your own."
    return Method(name, "your own", aim, make)
