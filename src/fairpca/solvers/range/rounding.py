"""From an optimum of the relaxation with high rank to an extreme one, with rank d or slightly more."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairpca.protocols import RelaxedSolution

_FRACTIONAL = 1e-7


def reduce_rank(
    matrices: np.ndarray, vectors: np.ndarray, eigenvalues: np.ndarray, wanted: np.ndarray | None = None
) -> RelaxedSolution:
    """Move P within its face, keeping every <A_a, P> and the trace, until no more fractional eigenvalue can be removed.

    A face whose fractional part has dimension f allows a move while f (f + 1) / 2 exceeds the number of kept
    quantities (Pataki; Tantipongpipat et al. 2019).

    If given, ``wanted`` holds the values of <A_a, P> that optimality prescribes (NaN: not prescribed). On a face of
    tied eigenvalues the weights on the central path are far more accurate than P, so P is first corrected to match.
    """
    order = np.argsort(eigenvalues)[::-1]
    vectors, eigenvalues = vectors[:, order], eigenvalues[order]
    whole = vectors[:, eigenvalues >= 1 - _FRACTIONAL]
    dimension = round(float(eigenvalues.sum()))
    mixed = (eigenvalues > _FRACTIONAL) & (eigenvalues < 1 - _FRACTIONAL)
    basis, values = vectors[:, mixed], eigenvalues[mixed]
    if values.size:  # the trace lost by rounding eigenvalues to 0 and 1 goes to the fractional ones
        values = np.clip(values + (dimension - whole.shape[1] - values.sum()) / values.size, 0.0, 1.0)
    face = _Face(values, basis, whole)
    if values.size and wanted is not None:
        face = _sorted_out(*_corrected(matrices, face, wanted), whole)
    # The first size with more entries than kept quantities: a part of that size always allows a move, and a cheap one.
    enough = 1 + int(np.sqrt(2 * len(matrices) + 2.25) - 0.5)
    while face.values.size:
        part = _Face(face.values[:enough], face.basis[:, :enough], face.whole)
        direction = _face_direction(matrices, part.basis)
        if direction is None:
            break
        moved = _move(part, direction)
        values = np.concatenate([face.values[enough:], moved.values])
        face = _Face(values, np.hstack([face.basis[:, enough:], moved.basis]), moved.whole)
    all_values = np.concatenate([np.ones(face.whole.shape[1]), face.values])
    return RelaxedSolution(np.hstack([face.whole, face.basis]), all_values)


class _Face(NamedTuple):
    """Fractional eigenvalues, their eigenvectors, and the eigenvectors of eigenvalue one."""

    values: np.ndarray
    basis: np.ndarray
    whole: np.ndarray


def _corrected(matrices: np.ndarray, face: _Face, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest change of the fractional part after which every prescribed <A_a, P> holds."""
    values, basis, whole = face
    known = np.isfinite(wanted)
    captured = np.einsum("pi,api->a", whole, matrices @ whole) + np.einsum(
        "pi,api,i->a", basis, matrices @ basis, values
    )
    system = _kept_quantities(matrices[known], basis)
    missing = np.append(0.0, (wanted - captured)[known])  # the trace stays
    change = np.linalg.lstsq(system, missing, rcond=1e-9)[0]  # a combination of the rows, so it is symmetric
    corrected, rotation = np.linalg.eigh(np.diag(values) + change.reshape(len(values), -1))
    return np.clip(corrected, 0.0, 1.0), basis @ rotation


def _kept_quantities(matrices: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """The identity and the matrices on the face, as rows of f^2 entries."""
    f = basis.shape[1]
    return np.vstack([np.eye(f).reshape(1, -1), (basis.T @ (matrices @ basis)).reshape(-1, f * f)])


def _face_direction(matrices: np.ndarray, basis: np.ndarray) -> np.ndarray | None:
    """A symmetric matrix orthogonal to the identity and to all matrices on the face, or None."""
    f, system = basis.shape[1], _kept_quantities(matrices, basis)
    system /= np.maximum(np.linalg.norm(system, axis=1, keepdims=True), np.finfo(float).tiny)
    # With thousands of matrices there are many rows, and on a large face many columns.
    _, sizes, kept = np.linalg.svd(np.linalg.qr(system, mode="r"), full_matrices=False)
    kept = kept[sizes > 1e-9]
    if len(kept) >= f * (f + 1) // 2:
        return None
    direction = np.random.default_rng(0).standard_normal((f, f))
    direction = (direction + direction.T).ravel()
    for _ in range(2):
        direction -= kept.T @ (kept @ direction)
    direction = direction.reshape(f, f)
    return (direction + direction.T) / np.linalg.norm(direction)


def _move(face: _Face, direction: np.ndarray) -> _Face:
    """Move along ``direction`` until an eigenvalue reaches 0 or 1."""
    step = _step_to_bound(face.values, direction)
    moved, rotation = np.linalg.eigh(np.diag(face.values) + step * direction)
    closest = np.argmin(np.minimum(moved, 1 - moved))
    moved[closest] = round(moved[closest])  # it reached the bound up to rounding
    return _sorted_out(moved, face.basis @ rotation, face.whole)


def _sorted_out(values: np.ndarray, basis: np.ndarray, whole: np.ndarray) -> _Face:
    """Remove eigenvalues that are no longer fractional: vectors of eigenvalue one join ``whole``, those of zero go."""
    one, zero = values > 1 - _FRACTIONAL, values < _FRACTIONAL
    rest = ~(one | zero)
    return _Face(values[rest], basis[:, rest], np.hstack([whole, basis[:, one]]))


def _step_to_bound(values: np.ndarray, direction: np.ndarray) -> float:
    """The smallest positive step at which diag(values) + step * direction leaves [0, I]; the trace of both is fixed."""
    to_zero = np.linalg.eigvalsh(direction / np.sqrt(np.outer(values, values)))[0]
    to_one = np.linalg.eigvalsh(-direction / np.sqrt(np.outer(1 - values, 1 - values)))[0]
    return -1.0 / min(to_zero, to_one)
