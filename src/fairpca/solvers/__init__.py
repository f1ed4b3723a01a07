"""Generic searches over subspaces and weights; they know no groups and no criteria by name."""

from fairpca.solvers.convex_concave import descend_pieces
from fairpca.solvers.dual import minimise_on_range
from fairpca.solvers.idle import spend_idle_directions
from fairpca.solvers.krylov import minimise_on_operators
from fairpca.solvers.mw import multiplicative_weights
from fairpca.solvers.range_sweep import sweep_range, trace_boundary
from fairpca.solvers.sdp import solve_sdp
from fairpca.solvers.subgradient import descend_subgradient

__all__ = [
    "descend_pieces",
    "descend_subgradient",
    "minimise_on_operators",
    "minimise_on_range",
    "multiplicative_weights",
    "solve_sdp",
    "spend_idle_directions",
    "sweep_range",
    "trace_boundary",
]
