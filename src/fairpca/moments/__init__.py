"""Group statistics: the only home of a group's count, mean and covariance."""

from fairpca.moments._accumulate import accumulate, group_moments
from fairpca.moments._factors import GroupFactors
from fairpca.moments._group_moments import GroupMoments

__all__ = ["GroupFactors", "GroupMoments", "accumulate", "group_moments"]
