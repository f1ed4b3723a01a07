"""Figures with matplotlib: Display classes that hold the values of one figure and draw it."""

from fairpca.plotting.biplot import BiplotDisplay
from fairpca.plotting.communality import CommunalityDisplay
from fairpca.plotting.components_needed import ComponentsNeededDisplay, ParallelAnalysisDisplay
from fairpca.plotting.convergence import ConvergenceDisplay
from fairpca.plotting.frontier import FrontierDisplay
from fairpca.plotting.group_error import GroupErrorDisplay
from fairpca.plotting.loadings import LoadingsDisplay
from fairpca.plotting.projection import ProjectionDisplay
from fairpca.plotting.stability import ComponentStabilityDisplay

__all__ = [
    "BiplotDisplay",
    "CommunalityDisplay",
    "ComponentStabilityDisplay",
    "ComponentsNeededDisplay",
    "ConvergenceDisplay",
    "FrontierDisplay",
    "GroupErrorDisplay",
    "LoadingsDisplay",
    "ParallelAnalysisDisplay",
    "ProjectionDisplay",
]
