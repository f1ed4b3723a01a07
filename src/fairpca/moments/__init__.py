"""Group statistics: the only home of a group's count, mean and covariance."""

from fairpca.moments._accumulate import group_moments
from fairpca.moments._group_moments import GroupMoments
from fairpca.moments._grouped_sample import GroupedSample

__all__ = ["GroupMoments", "GroupedSample", "group_moments"]
