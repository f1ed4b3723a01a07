"""The ``fairpca`` command: reading arguments and showing results, no mathematics."""

from fairpca.cli._main import guarded, main

__all__ = ["guarded", "main"]
