"""The trade-off between groups, choosing a point on it, and methods side by side."""

from fairpca.model_selection import scorers
from fairpca.model_selection.compare import compare
from fairpca.model_selection.comparison import Comparison, MethodResult
from fairpca.model_selection.frontier import Frontier, FrontierPoint, frontier
from fairpca.model_selection.methods import METHODS, Method

__all__ = [
    "METHODS",
    "Comparison",
    "Frontier",
    "FrontierPoint",
    "Method",
    "MethodResult",
    "compare",
    "frontier",
    "scorers",
]
