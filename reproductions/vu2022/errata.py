"""The errata of the authors' published scripts, repeated on purpose, so that their values can be traced.

- The last iterate of the subgradient descent is kept, not the best.
- lambda is lowered to the smaller share of the groups, without a word, where the conditions of Theorem 3.2 fail.
- The Python port of FairPCA compares its average with its last iterate by the sum of all entries of a matrix product,
  where the trace of the product (the sum of an elementwise product) is meant; and it is the relaxed projector that is
  measured.

(A fourth, the weight mu of CFPCA that is always 1, is explained with its claims and not repeated: it needs a
commercial solver's relaxed optimum.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairpca import RobustFairPCA
from fairpca.moments import GroupMoments, group_moments
from fairpca.problems.robust import group_radii
from reproductions._outcome import Claim, Table
from reproductions.vu2022 import protocol
from reproductions.vu2022.published import METHODS, Printed
from reproductions.vu2022.tables import Result, pair_claims

__all__ = [
    "clipped_penalty",
    "clipping_rows",
    "clipping_table",
    "last_iterate",
    "port_claims",
    "port_is_affordable",
    "port_of_fair_pca",
    "port_split",
    "port_table",
]

ETAS = (*np.linspace(0.25, 4.25, 17), 0.1)
_STEPS = 1000
_FIXED_POINT = 1e-15
#: The port takes a thousand eigenproblems for each of 55 fits per split; beyond this size it is left out.
_LARGEST_PORT = 12
#: What the authors' script returns for German credit (all rows, d = 3, alpha 0.15, lambda 0.5) from the PCA start.
_GERMAN, _GERMAN_ALPHA, _GERMAN_PENALTY, _GERMAN_LAST, _GERMAN_BEST = "German_Credit_Data", 0.15, 0.5, 41.946, 41.872
_LAST_DIGIT = 1e-3
_PORT_NAME = "FairPCA, as the authors' port returns it"


def last_iterate(tables: dict[str, Any]) -> tuple[list[Claim], list[Table]]:
    """One start of the paper's algorithm on German credit: what the script returns, the best, the optimum."""
    if _GERMAN not in tables:
        return [], []
    X, groups = protocol.features(tables[_GERMAN]), tables[_GERMAN].sensitive_features
    moments = group_moments(protocol.standardise(X, X), sensitive_features=groups)
    settings: dict[str, Any] = {"radius": _GERMAN_ALPHA, "penalty": _GERMAN_PENALTY}
    descent = RobustFairPCA(protocol.N_COMPONENTS, solver="subgradient", n_init=0, **settings).fit_moments(moments)
    exact = RobustFairPCA(protocol.N_COMPONENTS, **settings).fit_moments(moments)
    values = descent.history_[0]["objective"]
    source, what = "erratum: last iterate", "German Credit, one start, objective"
    claims = [
        Claim(source, f"{what}, last iterate", float(values[-1]), _GERMAN_LAST, _LAST_DIGIT, absolute=True),
        Claim(source, f"{what}, best iterate", float(values.min()), _GERMAN_BEST, _LAST_DIGIT, absolute=True),
    ]
    rows = [
        ["last iterate, as the script returns", float(values[-1])],
        ["best iterate of the same start", float(values.min())],
        ["proven optimum", exact.objective_],
    ]
    note = "German Credit, all rows, d = 3, alpha = 0.15, lambda = 0.5, 1000 steps from the pooled eigenvectors."
    return claims, [
        Table("erratum_last_iterate", "Erratum: the last iterate is returned", ["result", "objective"], rows, note)
    ]


def clipped_penalty(moments: GroupMoments, d: int, alpha: float, penalty: float) -> float:
    """The lambda that the script really uses."""
    smallest = float(moments.shares.min())
    if penalty <= smallest:
        return penalty
    matrices = moments.second_moments(np.zeros(moments.n_features))
    left = np.linalg.eigvalsh(matrices)[:, : moments.n_features - d].sum(axis=1)
    fails = (left < group_radii(alpha, moments.labels, moments.counts)).any()
    return smallest if fails else penalty


def clipping_rows(title: str, X: np.ndarray, groups: np.ndarray) -> list[list[Any]]:
    """For the errors against k (alpha = 0.15, lambda = 0.5, first split): where lambda is lowered, and what it does."""
    sample = protocol.Sample.draw(X, groups, 0, 0.5)
    rows: list[list[Any]] = []
    for k in range(2, min(21, X.shape[1]), 2):
        used = clipped_penalty(sample.inside, k, 0.15, 0.5)
        if used == 0.5:
            continue
        bases = [protocol.robust(sample.inside, 0.15, value, k) for value in (0.5, used)]
        gaps = [
            float(np.ptp(protocol.centred_errors(basis, part, sample.inside.means)))
            for part in (sample.inside, sample.outside)
            for basis in bases
        ]  # fmt: skip
        rows.append([title, k, used, *gaps])
    return rows


def clipping_table(rows: list[list[Any]], n_tables: int) -> Table:
    columns = [
        "data set", "k", "lambda used", "gap in sample, lambda 0.5", "gap in sample, as used",
        "gap out of sample, lambda 0.5", "gap out of sample, as used",
    ]  # fmt: skip
    note = (
        "Figures 3, 7 to 16 ask for lambda = 0.5; listed are the k for which the script takes less, on the first split "
        f"of {n_tables} data sets. Tables 1, 3 and 4 keep d = 3."
    )
    return Table("erratum_lambda", "Erratum: lambda is lowered silently", columns, rows, note)


def port_is_affordable(n_features: int) -> bool:
    return n_features <= _LARGEST_PORT


def port_of_fair_pca(matrices: np.ndarray, d: int, eta: float, *, as_meant: bool = False) -> np.ndarray:
    """The projector that the authors' port returns: of trace d, of higher rank where the weights never settle.

    ``as_meant`` judges by the losses instead, as the method does.
    """
    best = np.linalg.eigvalsh(matrices)[:, -d:].sum(axis=1)
    weights, total = np.full(2, 0.5), np.zeros_like(matrices[0])
    for step in range(1, _STEPS + 1):
        vectors = np.linalg.eigh(np.tensordot(weights, matrices, 1))[1][:, -d:]
        last = vectors @ vectors.T
        total += last
        raised = weights * np.exp(eta * (best - (matrices * last).sum(axis=(1, 2))))
        raised /= raised.sum()
        if np.abs(raised - weights).max() < _FIXED_POINT:
            total += (_STEPS - step) * last  # the remaining steps would only repeat this one
            break
        weights = raised
    mean = total / _STEPS

    def judged(projector: np.ndarray) -> float:
        products = matrices * projector if as_meant else matrices @ projector
        return float((best - products.sum(axis=(1, 2))).max())

    return mean if judged(mean) < judged(last) else last


def port_split(X: np.ndarray, groups: np.ndarray, seed: int) -> Result:
    """One split with the port: eta by cross-validation, values of the relaxed projector."""
    sample = protocol.Sample.draw(X, groups, seed)
    rows = sample.train
    parts = protocol.folds(sample.X[rows], groups[rows], seed)
    totals = [sum(_port_total(part, eta) for part in parts) for eta in ETAS]
    projector = port_of_fair_pca(
        sample.inside.second_moments("group"), protocol.N_COMPONENTS, ETAS[int(np.argmin(totals))]
    )
    outside, inside = (
        _relaxed_measures(projector, part, part, sample.inside.means) for part in (sample.outside, sample.inside)
    )
    return Result(outside, inside, np.nan)


def _port_total(part: Any, eta: float) -> float:
    # Within a fold the port sees the groups' rows about their own means, without the second standardisation.
    projector = port_of_fair_pca(part.unscaled.second_moments("group"), protocol.N_COMPONENTS, eta)
    return float(_relaxed_measures(projector, part.scaled, part.own, part.means).sum())


def _relaxed_measures(projector: np.ndarray, moments: GroupMoments, own: GroupMoments, means: np.ndarray) -> np.ndarray:
    """ABDiff and ARE with I - sqrt(I - P) as the projection, whose error is ``<M, I - P>``."""
    left = np.eye(len(projector)) - projector
    whole = np.einsum("apq,pq->a", moments.second_moments(np.zeros(moments.n_features)), left)
    centred = [float((own.second_moments(mean)[a] * left).sum()) for a, mean in enumerate(means)]
    return np.array([abs(centred[0] - centred[1]), float(moments.shares @ whole)])


def port_claims(title: str, result: Result, printed: Printed) -> list[Claim]:
    """The paper's FairPCA column compared with the port's values."""
    reason = (
        "With a large step the port's weights never settle, and its result depends on rounding: data changed by 1e-13 "
        "move an entry of the projector by up to 0.4 (E. Coli, step 3)."
    )
    return [
        *pair_claims("erratum: Table 1", title, _PORT_NAME, result.test, printed.test, reason),
        *pair_claims("erratum: Table 3", title, _PORT_NAME, result.train, printed.train, reason),
    ]


def port_table(rows: Sequence[tuple[str, Result, Printed | None]]) -> Table:
    columns = ["data set", "ABDiff, test", "published", "ARE, test", "published", "ABDiff, train", "published",
               "ARE, train", "published"]  # fmt: skip
    cells = []
    for title, result, printed in rows:
        theirs = [*printed.test, *printed.train] if printed else [""] * 4
        ours = [float(value) for value in (*result.test, *result.train)]
        cells.append([title, *(x for pair in zip(ours, theirs, strict=True) for x in pair)])
    note = f"Tables of at most {_LARGEST_PORT} features: the port's thousand steps take too long on others."
    return Table(
        "erratum_fair_pca", f"Erratum: {METHODS['FairPCA']} as the authors' port returns it", columns, cells, note
    )
