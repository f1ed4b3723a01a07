"""Generic searches over subspaces and weights; they know no groups and no criteria by name."""
