"""How is an estimator of one's own added?
=======================================

An estimator that needs the moments of the groups only implements one method, ``_solve``. Everything else comes from
``MomentEstimator``: ``fit``, ``partial_fit``, Dask collections, ``transform``, saving, ``compare`` and the audit.
"""

# %%
# As an example: PCA in which every group counts the same, whatever its size.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from fairpca import FairPCA
from fairpca.datasets import load_german_credit
from fairpca.estimators import Fit, MomentEstimator, SolverResult, Status
from fairpca.inference import cross_validate_groups


def leading(matrix, count):
    """The largest eigenvalues, summed, and their eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    return float(values[-count:].sum()), vectors[:, -count:]


class EqualWeightPCA(MomentEstimator):
    def __init__(self, n_components=2):
        self.n_components = n_components

    def _solve(self, reduction, n_components):
        matrices = reduction.second_moments("pooled")
        weights = np.full(len(matrices), 1 / len(matrices))
        value, basis = leading(np.tensordot(weights, matrices, 1), n_components)
        captured = np.einsum("pi,api->a", basis, matrices @ basis)
        best = np.array([leading(one, n_components)[0] for one in matrices])
        # Of an eigenproblem, the value is its own bound.
        result = SolverResult(basis, -value, -value, weights, Status.OPTIMAL, n_iter=1, n_oracle_calls=1)
        return Fit(result, np.einsum("aii->a", matrices), captured, best)


# %%
# It takes part in cross-validation by groups like fairpca's own: errors on new rows, with intervals.
X, sex = load_german_credit(return_X_s=True)
methods = {"PCA": PCA(5), "EqualWeightPCA": EqualWeightPCA(5), "FairPCA": FairPCA(5)}
found = {name: cross_validate_groups(one, X, sensitive_features=sex, random_state=0) for name, one in methods.items()}
for name, figures in found.items():
    print(name, {group: round(loss.value, 3) for group, loss in figures.loss.by_group.items()}, "(loss in the sample)")

# %%
figure, ax = plt.subplots(layout="constrained")
for g, (group, colour) in enumerate({"female": "#d55e00", "male": "#0072b2"}.items()):
    estimates = [figures.corrected_loss.by_group[group] for figures in found.values()]
    values = np.array([(one.value, one.value - one.low, one.high - one.value) for one in estimates]).T
    ax.errorbar(np.arange(3) + 0.1 * g, values[0], values[1:], fmt="o", color=colour, capsize=3, label=group)
ax.set_xticks(np.arange(3) + 0.05, list(found))
ax.set(ylabel="corrected loss on new rows, 5 components", ylim=(0, None))
ax.legend()
