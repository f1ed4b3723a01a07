"""PCA of an AnnData with groups of cells: unequal batches, cohorts or donors. Results stand where scanpy expects them.

The functions take the place of :func:`scanpy.pp.pca`, so that neighbours, embeddings and plots of scanpy work on the
result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from fairpca._labels import label_texts
from fairpca._validation import check_choice, check_number, is_dask
from fairpca.estimators import ESTIMATORS, LinearProjection
from fairpca.moments import group_moments

__all__ = ["pca"]

#: Numbers read from a file at a time.
_BLOCK_NUMBERS = 10_000_000
#: Up to this many features, moments of a file are summed block by block; a p x p matrix per group would be too large.
_MANY_FEATURES = 3000


def pca(
    adata: Any,
    groupby: str | list[str],
    *,
    n_comps: int = 30,
    method: str = "FairPCA",
    layer: str | None = None,
    mask_var: Any = None,
    key_added: str | None = None,
    **options: Any,
) -> LinearProjection:
    """Fit components with the groups in ``adata.obs[groupby]``, and store scores and components as scanpy does.

    Parameters
    ----------
    adata : AnnData
        ``X`` (or the layer) is dense, sparse, a Dask array, or backed by a file, which is then read in blocks of rows.
    groupby : str or list of str
        Column of ``adata.obs``; with several, every combination that occurs is a group.
    n_comps : int, default=30
    method : str, default="FairPCA"
        Name of an estimator of :mod:`fairpca` with linear components.
    layer : str, optional
        Layer to use instead of ``X``.
    mask_var : str or array of bool, optional
        The variables to use: a column of ``adata.var``, or one value per variable. By default those in
        ``adata.var["highly_variable"]``, if there is such a column, else all.
    key_added : str, optional
        Key for all three results instead of those below.
    **options : parameters of the estimator
        Such as ``criterion="mean"`` and ``center="group"``, by which every group counts the same.

    Returns
    -------
    estimator
        Fitted. ``adata`` has changed: the scores are in ``obsm["X_pca"]``, the components in ``varm["PCs"]`` (zero for
        variables that were not used), and in ``uns["pca"]`` are ``variance``, ``variance_ratio``, ``params``, and with
        the key ``groups`` the label, count, error, loss and variance of each group, and the objective with its bound.

    See Also
    --------
    fairpca.FairPCA : The default method.

    Examples
    --------
    >>> import scanpy as sc  # doctest: +SKIP
    >>> from fairpca.anndata import pca
    >>> pca(adata, "batch", criterion="mean", center="group")  # doctest: +SKIP
    >>> sc.pp.neighbors(adata)  # doctest: +SKIP
    >>> adata.uns["pca"]["groups"]["loss"]  # doctest: +SKIP
    """
    check_choice("method", method, (name for name, one in ESTIMATORS.items() if issubclass(one, LinearProjection)))
    check_number("n_comps", n_comps, at_least=1, integer=True)
    X, groups = adata.X if layer is None else adata.layers[layer], _groups(adata, groupby)
    mask_name, mask = _mask(adata, mask_var)
    if n_comps > mask.sum():
        raise ValueError(f"n_comps={n_comps} is more than the number of variables used, {mask.sum()}.")
    estimator = ESTIMATORS[method](int(n_comps), **options)
    if is_dask(X):
        scores = _fit_dask(estimator, X if mask.all() else X[:, mask], groups)
    elif isinstance(X, np.ndarray) or sparse.issparse(X):
        X = X if mask.all() else X[:, mask]
        scores = estimator.fit(X, sensitive_features=groups).transform(X)
    else:
        scores = _fit_backed(estimator, X, groups, mask)
    obsm, varm, uns = ("X_pca", "PCs", "pca") if key_added is None else [key_added] * 3
    components = np.zeros((len(mask), n_comps))
    components[mask] = estimator._encoder.T
    adata.obsm[obsm], adata.varm[varm] = scores, components
    params = {
        "zero_center": True,
        "use_highly_variable": mask_name == "highly_variable",
        "mask_var": mask_name,
        "estimator": repr(estimator),
        "groupby": groupby,
    } | ({} if layer is None else {"layer": layer})
    adata.uns[uns] = {
        "params": params,
        "variance": estimator.explained_variance_,
        "variance_ratio": estimator.explained_variance_ratio_,
        "groups": _by_group(estimator),
    }
    return estimator


def _groups(adata: Any, groupby: str | list[str]) -> Any:
    wanted = [groupby] if isinstance(groupby, str) else list(groupby)
    for name in wanted:
        if name not in adata.obs.columns:
            raise ValueError(f"groupby: {name!r} is not a column of adata.obs; choose from {list(adata.obs.columns)}.")
    return adata.obs[wanted[0] if len(wanted) == 1 else wanted]


def _mask(adata: Any, mask_var: Any) -> tuple[str | None, np.ndarray]:
    """The name of the column, if there is one, and which variables are used."""
    if mask_var is None and "highly_variable" in adata.var.columns:
        mask_var = "highly_variable"
    if mask_var is None:
        return None, np.ones(adata.n_vars, dtype=bool)
    name = mask_var if isinstance(mask_var, str) else None
    if name is not None and name not in adata.var.columns:
        raise ValueError(f"mask_var={name!r} is not a column of adata.var; choose from {list(adata.var.columns)}.")
    mask = np.asarray(mask_var if name is None else adata.var[name])
    if mask.dtype != bool or mask.shape != (adata.n_vars,):
        raise ValueError(f"mask_var must be one True or False for each of the {adata.n_vars} variables.")
    return name, mask


def _fit_dask(estimator: Any, X: Any, groups: Any) -> np.ndarray:
    import dask.array as da

    X = X.rechunk({1: -1})
    labels = da.from_array(np.asarray(groups, dtype=object), chunks=(X.chunks[0], -1)[: groups.ndim])
    return estimator.fit(X, sensitive_features=labels).transform(X).compute()


def _fit_backed(estimator: Any, X: Any, groups: Any, mask: np.ndarray) -> np.ndarray:
    """Two passes over a file: for the moments, and for the scores."""
    if not hasattr(estimator, "fit_moments") or mask.sum() > _MANY_FEATURES:
        raise ValueError(
            f"{type(estimator).__name__} with {mask.sum()} variables needs the rows in memory, but they are in a file: "
            f"use adata.to_memory(), or at most {_MANY_FEATURES} variables (mask_var) and a method that needs moments "
            "only, such as FairPCA."
        )
    step = max(_BLOCK_NUMBERS // len(mask), 1)

    def blocks() -> Iterator[tuple[Any, slice]]:
        for rows in gen_batches(X.shape[0], step):
            yield X[rows][:, mask], rows

    moments = group_moments((block, groups.iloc[rows]) for block, rows in blocks())
    estimator.fit_moments(moments)
    return np.vstack([estimator.transform(block) for block, _ in blocks()])


def _by_group(estimator: Any) -> dict[str, Any]:
    """What a file can hold: text and numbers."""
    names = {"count": "group_counts_", "error": "group_errors_", "loss": "group_losses_"}
    names |= {"variance": "group_variances_", "objective": "objective_", "lower_bound": "lower_bound_"}
    found = {key: getattr(estimator, name) for key, name in names.items() if hasattr(estimator, name)}
    return {"label": np.array(label_texts(estimator.groups_), dtype=object), **found}
