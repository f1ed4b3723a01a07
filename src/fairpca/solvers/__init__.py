"""Generic searches over subspaces and weights; they know no groups and no criteria by name."""

from fairpca.solvers.range.branch_and_bound import tighten_bound
from fairpca.solvers.range.convex_concave import descend_pieces
from fairpca.solvers.range.dual import minimise_on_range
from fairpca.solvers.range.nested import minimise_nested
from fairpca.solvers.range.operator_dual import best_of_operators, leading_of_operator, minimise_on_operators
from fairpca.solvers.range.sweep import sweep_range, trace_boundary
from fairpca.solvers.reference.mw import multiplicative_weights
from fairpca.solvers.reference.sdp import solve_sdp
from fairpca.solvers.reference.subgradient import descend_subgradient

__all__ = [
    "best_of_operators",
    "descend_pieces",
    "descend_subgradient",
    "leading_of_operator",
    "minimise_nested",
    "minimise_on_operators",
    "minimise_on_range",
    "multiplicative_weights",
    "solve_sdp",
    "sweep_range",
    "tighten_bound",
    "trace_boundary",
]
