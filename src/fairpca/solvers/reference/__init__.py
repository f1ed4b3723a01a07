"""The papers' own algorithms, as references for tests and benchmarks."""
