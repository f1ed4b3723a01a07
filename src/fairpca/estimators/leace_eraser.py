"""LeaceEraser: every linear trace of the group removed by the least change, in the space of the rows."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from fairpca._archive import DAMAGE
from fairpca._containers import as_rows, on_another_device, one_per_row
from fairpca._continuous import check_beside, columns_by_name
from fairpca._files import replace_file
from fairpca._frames import is_frame
from fairpca._optional import require
from fairpca._validation import (
    check_choice,
    check_matrix,
    check_sample_weight,
    check_several_groups,
    is_dask,
    warn_user,
    without_sensitive_columns,
)
from fairpca._values import Packer, Unpacker
from fairpca.estimators._eraser_module import eraser_module
from fairpca.estimators._kinds import detached, in_kind
from fairpca.estimators._linear_projection import label_array
from fairpca.estimators._restored import check_restored
from fairpca.estimators._uncorrelated import TakesContinuous, check_attributes
from fairpca.moments._attributes import JointMoments, accumulate_joint
from fairpca.moments.dask import joint_moments_from_dask, rows_lazily
from fairpca.problems.erasure import Erasure, least_squares_erasure

__all__ = ["LeaceEraser"]

#: The numbers of the map, by the names that they have in a file and in a module of torch.
_MAP = {"mean": "mean_", "directions": "erased_directions_", "coefficients": "erased_coefficients_"}
_ABOUT = ("groups_", "group_counts_", "n_samples_seen_", "continuous_", "preserved_", "distortion_", "map_norm_")


class LeaceEraser(OneToOneFeatureMixin, TakesContinuous):
    """Erasure of everything that predicts the group linearly, in the space of the rows: embeddings, for example.

    Every row x is replaced by ``r(x) = x - D C^T (x - m)``, where m is the mean and D spans the differences between the
    group means. Among all affine maps after which the rows are uncorrelated with the groups, this one changes the rows
    least (least-squares concept erasure, LEACE, Belrose et al. 2023). With ``preserve="label"`` it is the least change
    that also keeps the covariance with a label exactly (SPLINCE, Holstege et al. 2025). The map has rank k - 1 for k
    groups, and is kept as two thin matrices.

    Parameters
    ----------
    preserve : {None, "label"}, default=None
        What to keep: with "label", the covariance of the rows with ``y``, which ``fit`` then requires. An array of
        floats is a number (or several, one per column); anything else is a class, and the covariances with all classes
        are kept.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    erased_directions_, erased_coefficients_ : ndarray of shape (n_erased, n_features)
        D and C, transposed: orthonormal rows that span what is subtracted, and how much of it.
    distortion_ : float
        Mean squared change of the rows as a share of their variance, in the sample: 0 (nothing) to 1 (all is erased).
    map_norm_ : float
        The largest factor by which the map lengthens the difference between two rows; 1 or more unless all is erased.
        A large norm means that rows unlike those of the fit may be changed a lot.
    groups_, group_counts_ : ndarray of shape (n_groups,)
    continuous_ : list of str
        Names of the continuous sensitive features; with these alone, ``groups_`` is ``["all"]``.
    preserved_ : list
        The classes, or names of the numbers, whose covariance is kept.
    n_features_in_, feature_names_in_, n_samples_seen_
        As in :class:`sklearn.decomposition.PCA`.

    See Also
    --------
    LeacePCA : The same erasure, followed by PCA.
    fairpca.metrics.readability : What linear and strong classifiers still see, on new rows.

    Notes
    -----
    *What is promised.* On the rows of the fit, no linear classifier predicts the group better than a constant. On new
    rows this holds up to the error of estimation, and classifiers that are not linear often recover the group: measure
    it by :func:`~fairpca.metrics.readability`.

    *What goes in comes out.* ``transform`` returns numpy arrays (float16 included), data frames and torch tensors of
    the same shape, type and device, with any leading dimensions; a sparse matrix becomes dense, because a dense row is
    subtracted from each of its rows. In ``fit`` and ``partial_fit``, rows of shape [batch, tokens, p] have groups, y
    and weights of shape [batch], which are repeated for all tokens, or [batch, tokens]; weights of 0 leave out padding.

    *Precision.* Sums are in float64 whatever the type of the rows. Products of float32 or narrower rows are formed in
    float32 for a few thousand rows at a time: an error of about 1e-7 times the standard deviations in each covariance
    of a part, and less in sums over many parts. float64 rows and continuous sensitive features are multiplied in
    float64. Tensors on other devices than the CPU are multiplied where they are, and only the sums leave the device.
    The result is rounded once, to the type of the rows, which is all that is left in bfloat16 and float16.

    References
    ----------
    Belrose, Schneider-Joseph, Ravfogel, Cotterell, Raff and Biderman (2023). LEACE: Perfect linear concept erasure in
    closed form. NeurIPS.

    Holstege, Ravfogel and Wouters (2025). Preserving task-relevant information under linear concept removal. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import LeaceEraser
    >>> rng = np.random.default_rng(0)
    >>> site, label = rng.integers(0, 3, 600), rng.integers(0, 2, 600)
    >>> X = rng.normal(size=(600, 8)) + rng.normal(size=(3, 8))[site] + label[:, None]
    >>> clean = LeaceEraser().fit_transform(X, sensitive_features=site)
    >>> bool(np.ptp([clean[site == one].mean(axis=0) for one in range(3)], axis=0).max() < 1e-12)
    True
    >>> eraser = LeaceEraser(preserve="label").fit(X, label, sensitive_features=site)
    >>> before, after = (rows.T @ (label - label.mean()) / 600 for rows in (X, eraser.transform(X)))
    >>> bool(np.allclose(before, after, rtol=1e-10))
    True
    """

    _saved_attributes: ClassVar = ("_columns", "_moments")

    def __init__(self, *, preserve: str | None = None) -> None:
        self.preserve = preserve

    def transform(self, X: Any) -> Any:
        """The rows without linear traces of the group: same shape, kind, type and device; lazy for Dask."""
        check_is_fitted(self)
        return self._erase_on_device(detached(X)) if on_another_device(X) else self._erase(X)

    def to_torch(self, dtype: Any = None) -> Any:
        """The map as a :class:`torch.nn.Module`, for use inside a model: it takes tensors of shape [..., p].

        Gradients pass through it. Its numbers have the type ``dtype`` (float32 by default), and keep it when a model is
        converted to half precision; the result has the type of its input.

        Examples
        --------
        >>> import numpy as np
        >>> from fairpca import LeaceEraser
        >>> X = np.random.default_rng(0).normal(size=(40, 3))
        >>> eraser = LeaceEraser().fit(X, sensitive_features=np.arange(40) % 2)
        >>> model = torch.nn.Sequential(torch.nn.Linear(5, 3), eraser.to_torch())  # doctest: +SKIP
        """
        check_is_fitted(self)
        module, torch = eraser_module(), require("torch", "to_torch")
        dtype = torch.float32 if dtype is None else dtype
        return module(**{name: torch.tensor(getattr(self, source), dtype=dtype) for name, source in _MAP.items()})

    def save(self, path: Any) -> Any:
        """Write the map and what describes it as safetensors, which any framework reads; the sums are left out.

        :func:`fairpca.save_model` keeps the sums too, so that rows can be added later.

        Examples
        --------
        >>> import numpy as np, pathlib, tempfile
        >>> from fairpca import LeaceEraser
        >>> X = np.random.default_rng(0).normal(size=(40, 3))
        >>> eraser = LeaceEraser().fit(X, sensitive_features=np.arange(40) % 2)
        >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +SKIP
        ...     again = LeaceEraser.load(eraser.save(pathlib.Path(folder) / "eraser.safetensors"))
        """
        check_is_fitted(self)
        file_format = require("safetensors.numpy", "save")
        found = {name: getattr(self, name) for name in (*_ABOUT, "feature_names_in_") if hasattr(self, name)}
        about = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in found.items()}
        header = json.dumps(Packer({}).pack({"preserve": self.preserve, **about}, "save"))
        parts = {name: np.ascontiguousarray(getattr(self, source)) for name, source in _MAP.items()}
        content = file_format.save(parts, {"fairpca": header})
        return replace_file(path, lambda stream: stream.write(content))

    @classmethod
    def load(cls, path: Any) -> Self:
        """Read what :meth:`save` wrote; safe for untrusted files.

        Examples
        --------
        >>> from fairpca import LeaceEraser
        >>> LeaceEraser.load("eraser.safetensors")  # doctest: +SKIP
        """
        safetensors = require("safetensors", "load")
        try:
            with safetensors.safe_open(path, "np") as file:
                header = json.loads((file.metadata() or {})["fairpca"])
                found = {source: file.get_tensor(name) for name, source in _MAP.items()}
            about = Unpacker({}, {}).unpack(header)
            eraser = cls(preserve=about.pop("preserve"))
            found |= {name: about[name] for name in _ABOUT} | {"n_features_in_": len(found["mean_"])}
            found |= {"groups_": label_array(about["groups_"]), "group_counts_": np.array(about["group_counts_"])}
            if "feature_names_in_" in about:
                found["feature_names_in_"] = np.array(about["feature_names_in_"], dtype=object)
            eraser.__dict__.update(found)
            check_restored(eraser)
        except FileNotFoundError:
            raise
        except (safetensors.SafetensorError, *DAMAGE) as problem:
            raise ValueError(f"{path} is not what LeaceEraser.save writes, or it is damaged: {problem}") from None
        return eraser

    def _check_reduction(self, reduction: Any) -> Any:
        if self.preserve is not None and not isinstance(reduction, JointMoments):
            raise ValueError("preserve='label', but moments hold no label; use fit or partial_fit.")
        return reduction

    def _measure(
        self, X: Any, y: Any, sensitive_features: Any, continuous: Any, sample_weight: Any, *, part: bool
    ) -> JointMoments:
        """The moments of these rows beside their groups, continuous sensitive features and label."""
        reset = not part or "_columns" not in vars(self)
        if self.preserve is None:
            y = None
        elif y is None:
            raise ValueError("preserve='label' needs y, the label of each row: fit(X, y, sensitive_features=...).")
        if is_dask(X):
            self._check_dask(X, sensitive_features, reset=reset)
            return joint_moments_from_dask(X, sensitive_features, continuous, y, sample_weight)
        features, sensitive_features = self._split_off_groups(X, sensitive_features, continuous, reset=reset)
        y, sensitive_features, sample_weight = (
            one_per_row(name, values, X)
            for name, values in (("y", y), ("sensitive_features", sensitive_features), ("sample_weight", sample_weight))
        )
        if continuous is not None and columns_by_name(continuous) is None:
            continuous = one_per_row("continuous", continuous, X)
        if on_another_device(X):
            rows = X.detach().reshape(-1, X.shape[-1])
            check_matrix(self, np.zeros((2, X.shape[-1])), reset=reset)
        else:
            rows = check_matrix(self, as_rows(features), reset=reset, min_samples=0 if part else 2, finite=False)
        parts = check_beside(sensitive_features, continuous, y, rows.shape[0])
        return accumulate_joint(rows, parts, check_sample_weight(sample_weight, rows.shape[0], part=part))

    def _rows_seen(self) -> JointMoments | None:
        if "_columns" in vars(self):
            return JointMoments(self._columns, self._moments)
        if "groups_" in vars(self):
            raise ValueError("This eraser holds its map but no sums to which rows could be added; use a new one.")
        return None

    def _remember(self, moments: Any) -> None:
        for name in ("_columns", "_moments"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if isinstance(moments, JointMoments):
            self._columns, self._moments = moments.columns, moments.joint

    def _learn(self, moments: Any) -> Self:
        if not isinstance(moments, JointMoments):
            erased, kept, counts = moments, None, moments.counts
            names, preserved = list(getattr(moments, "names", ())), []
        else:
            erased, kept = moments.beside("group", "continuous"), moments.beside("class", "number")
            counts = moments.counts()
            names, preserved = list(moments.named("continuous")), [*moments.named("class"), *moments.named("number")]
            if self.preserve is not None and kept is None:
                raise ValueError(f"y has a single class, {preserved[0]!r}: there is no covariance with it to be kept.")
        check_attributes(erased) if names else check_several_groups(moments.labels, float(counts.sum()))
        erasure = least_squares_erasure(erased, kept)
        if erasure.directions.shape[1] == erased.n_features:
            warn_user(
                f"All {erased.n_features} dimensions of X differ between the groups: every row becomes the mean, and "
                "nothing is left. Use more features, or fewer groups."
            )
        self._forget()  # what an earlier fit set
        self.mean_ = erased.pooled_mean.copy()
        self.erased_directions_, self.erased_coefficients_ = erasure.directions.T.copy(), erasure.coefficients.T.copy()
        self.distortion_, self.map_norm_ = erasure.distortion(erased.moments.pooled_covariance()), erasure.norm
        self.continuous_, self.preserved_ = names, preserved
        self._set_labels(moments.labels, counts)
        self._remember(moments)
        return self

    def _check_parameters(self) -> None:
        if self.preserve is not None:
            check_choice("preserve", self.preserve, ("label",))

    @property
    def _erasure(self) -> Erasure:
        return Erasure(self.erased_directions_.T, self.erased_coefficients_.T)

    @in_kind
    def _erase(self, X: Any) -> Any:
        rows = self._checked_rows(X)
        if is_dask(X):
            return rows_lazily(rows, self._erasure.of_rows, self.mean_, width=len(self.mean_))
        erased = self._erasure.of_rows(rows, self.mean_)
        if not is_frame(X):
            return erased
        names = list(without_sensitive_columns(self, X).columns)
        return type(X)(erased, index=X.index, columns=names) if hasattr(X, "iloc") else type(X)(erased, schema=names)

    def _erase_on_device(self, X: Any) -> Any:
        torch = require("torch", "transform")
        check_matrix(self, np.zeros((1, X.shape[-1])), reset=False)
        X = X if X.is_floating_point() else X.double()
        wide = torch.promote_types(X.dtype, torch.float32)
        if not torch.isfinite(X).all():
            raise ValueError("Input X contains NaN or infinity; drop or fill those rows first.")
        return self.to_torch(wide).to(X.device)(X)
