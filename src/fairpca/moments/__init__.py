"""Group statistics: the only place where a group's count, mean and covariance are computed."""

from fairpca.moments._accumulate import group_moments
from fairpca.moments._attributes import AttributeMoments, attribute_moments
from fairpca.moments._group_moments import GroupMoments

__all__ = ["AttributeMoments", "GroupMoments", "attribute_moments", "group_moments"]
