"""Group statistics: the only place where a group's count, mean and covariance are computed."""

from fairpca.moments._accumulate import accumulate, chunk_moments, group_moments
from fairpca.moments._attributes import AttributeMoments, accumulate_attributes, attribute_moments
from fairpca.moments._factors import GroupFactors
from fairpca.moments._folds import FoldMoments
from fairpca.moments._group_moments import GroupMoments, Reduction
from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments._row_space import RowSpace
from fairpca.moments._row_squares import row_squares
from fairpca.moments._sources import (
    Cells,
    ChunkSource,
    GivenCells,
    MemorySource,
    RandomCells,
    RowSource,
    cell_moments,
    row_counts,
    spread_evenly,
)
from fairpca.moments._streams import RowBlock, moments_from_blocks

__all__ = [
    "AttributeMoments",
    "Cells",
    "ChunkSource",
    "FoldMoments",
    "GivenCells",
    "GroupFactors",
    "GroupMoments",
    "GroupedSample",
    "MemorySource",
    "RandomCells",
    "Reduction",
    "RowBlock",
    "RowSource",
    "RowSpace",
    "accumulate",
    "accumulate_attributes",
    "attribute_moments",
    "cell_moments",
    "chunk_moments",
    "group_moments",
    "moments_from_blocks",
    "row_counts",
    "row_squares",
    "spread_evenly",
]
