"""Tables in files: read, check and encode their columns, in memory or batch by batch."""

from fairpca.tables.encoding import Encoder
from fairpca.tables.errors import TableError
from fairpca.tables.missing import MissingTokens
from fairpca.tables.preparation import Preparation
from fairpca.tables.preparing import TableData, prepare_table
from fairpca.tables.reading import read_table
from fairpca.tables.summary import StreamedTable, stream_table
from fairpca.tables.table import Table

__all__ = [
    "Encoder",
    "MissingTokens",
    "Preparation",
    "StreamedTable",
    "Table",
    "TableData",
    "TableError",
    "prepare_table",
    "read_table",
    "stream_table",
]
