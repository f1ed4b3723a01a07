"""The trade-off between groups, and choosing a point on it."""

from fairpca.model_selection.frontier import Frontier, FrontierPoint, frontier

__all__ = ["Frontier", "FrontierPoint", "frontier"]
