"""Searches over orthonormal frames, by gradients."""
