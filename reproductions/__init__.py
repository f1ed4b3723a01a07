"""One folder a paper: what it claims, the run, the published figures, the tolerance."""
