"""The scikit-learn estimators, which connect data, problems and solvers."""

from fairpca.estimators._base import Fit, MomentEstimator
from fairpca.estimators._linear_projection import LinearProjection
from fairpca.estimators._sklearn_checks import expected_failed_checks
from fairpca.estimators.anchor_pca import AnchorPCA
from fairpca.estimators.fair_pca import FairPCA
from fairpca.estimators.kernel_parity_pca import KernelParityPCA
from fairpca.estimators.leace_eraser import LeaceEraser
from fairpca.estimators.leace_pca import LeacePCA
from fairpca.estimators.mmd_fair_pca import MMDFairPCA
from fairpca.estimators.parity_pca import ParityPCA
from fairpca.estimators.robust_fair_pca import RobustFairPCA
from fairpca.estimators.rotation import RotatedComponents
from fairpca.protocols import SolverResult, Status

__all__ = [
    "ESTIMATORS",
    "AnchorPCA",
    "FairPCA",
    "Fit",
    "KernelParityPCA",
    "LeaceEraser",
    "LeacePCA",
    "LinearProjection",
    "MMDFairPCA",
    "MomentEstimator",
    "ParityPCA",
    "RobustFairPCA",
    "RotatedComponents",
    "SolverResult",
    "Status",
    "expected_failed_checks",
]

#: The estimators by name; most other exports are base classes for custom estimators.
ESTIMATORS: dict[str, type] = {
    one.__name__: one
    for one in (AnchorPCA, FairPCA, KernelParityPCA, LeaceEraser, LeacePCA, MMDFairPCA, ParityPCA, RobustFairPCA)
}
