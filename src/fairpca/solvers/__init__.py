"""Generic searches over subspaces and weights; they know no groups and no criteria by name."""

from fairpca.solvers.dual import minimise_on_range
from fairpca.solvers.krylov import minimise_on_operators
from fairpca.solvers.mw import multiplicative_weights
from fairpca.solvers.sdp import solve_sdp

__all__ = ["minimise_on_operators", "minimise_on_range", "multiplicative_weights", "solve_sdp"]
