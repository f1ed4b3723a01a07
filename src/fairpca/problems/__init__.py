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

__all__ = [
    "CRITERIA",
    "Minimax",
    "NashWelfare",
    "balanced_problem",
    "best_captured",
    "group_errors",
    "group_losses",
]
