"""The trade-off between groups, choosing a point on it, and methods side by side."""

from fairpca.model_selection import scorers
from fairpca.model_selection.compare import compare
from fairpca.model_selection.comparison import Comparison, MethodResult
from fairpca.model_selection.frontier import Frontier, FrontierPoint, frontier
from fairpca.model_selection.methods import METHODS, Method
from fairpca.model_selection.needed import ComponentsNeeded, components_needed
from fairpca.model_selection.parallel import ParallelAnalysis

__all__ = [
    "METHODS",
    "Comparison",
    "ComponentsNeeded",
    "Frontier",
    "FrontierPoint",
    "Method",
    "MethodResult",
    "ParallelAnalysis",
    "compare",
    "components_needed",
    "frontier",
    "scorers",
]
