"""The documented import path of :func:`fairpca.tables.stream_table`."""

from fairpca.tables.summary import StreamedTable, stream_table

__all__ = ["StreamedTable", "stream_table"]
