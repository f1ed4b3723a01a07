"""Searches over the weights of a joint range, and over the subspaces that attain its points."""
