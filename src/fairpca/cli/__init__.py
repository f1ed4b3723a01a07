"""The ``fairpca`` command: reading arguments and showing results, no mathematics."""

from fairpca.cli._main import main

__all__ = ["main"]
