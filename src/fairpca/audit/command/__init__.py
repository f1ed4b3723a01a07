"""The ``fairpca`` command: reading arguments and showing results, no mathematics."""

from fairpca.audit.command._main import guarded, main

__all__ = ["guarded", "main"]
