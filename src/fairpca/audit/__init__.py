"""The audit of a table: read a file or a data frame, prepare its columns, compare methods, write a report.

Needs the extra ``fairpca[audit]``, except for :func:`audit` of arrays.
"""

from fairpca.audit.errors import TableError
from fairpca.audit.model import PreparedModel, load
from fairpca.audit.preparation import Preparation
from fairpca.audit.prepare import Prepared, prepare
from fairpca.audit.read import read_table
from fairpca.audit.report import Audit, audit, schema
from fairpca.audit.table import Table
from fairpca.audit.texts import MissingTokens

__all__ = [
    "Audit",
    "MissingTokens",
    "Preparation",
    "Prepared",
    "PreparedModel",
    "Table",
    "TableError",
    "audit",
    "load",
    "prepare",
    "read_table",
    "schema",
]
