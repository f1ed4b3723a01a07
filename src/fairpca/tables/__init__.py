"""Files of tables: reading, encoding and checking their columns, in memory or batch by batch."""

from fairpca.tables.summary import StreamedTable, stream_table
from fairpca.tables.table import Encoder, Table, TableData, prepare_table, read_table

__all__ = ["Encoder", "StreamedTable", "Table", "TableData", "prepare_table", "read_table", "stream_table"]
