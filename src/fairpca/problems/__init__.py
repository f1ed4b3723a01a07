"""Pure mathematics: the objectives, as functions of group statistics."""

from fairpca.joint_range import Minimax
from fairpca.problems.balanced import (
    CRITERIA,
    NashWelfare,
    balanced_problem,
    best_captured,
    group_errors,
    group_losses,
    group_scales,
)
from fairpca.problems.robust import RobustGap, check_radius, group_radii

__all__ = [
    "CRITERIA",
    "Minimax",
    "NashWelfare",
    "RobustGap",
    "balanced_problem",
    "best_captured",
    "check_radius",
    "group_errors",
    "group_losses",
    "group_radii",
    "group_scales",
]
