"""Group statistics: the only home of a group's count, mean and covariance."""

from fairpca.moments._accumulate import accumulate, chunk_moments, group_moments
from fairpca.moments._factors import GroupFactors
from fairpca.moments._group_moments import GroupMoments
from fairpca.moments._grouped_sample import GroupedSample
from fairpca.moments._row_space import RowSpace

__all__ = ["GroupFactors", "GroupMoments", "GroupedSample", "RowSpace", "accumulate", "chunk_moments", "group_moments"]
