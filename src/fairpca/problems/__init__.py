"""Pure mathematics: what is minimised, as a function of group statistics."""

from fairpca.problems.balanced import (
    CRITERIA,
    Minimax,
    NashWelfare,
    balanced_problem,
    best_captured,
    group_errors,
    group_losses,
)
from fairpca.problems.robust import RobustGap, group_radii

__all__ = [
    "CRITERIA",
    "Minimax",
    "NashWelfare",
    "RobustGap",
    "balanced_problem",
    "best_captured",
    "group_errors",
    "group_losses",
    "group_radii",
]
