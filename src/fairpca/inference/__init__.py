"""Statistical inference on group losses: comparison with chance, and cross-validation on held-out rows."""

from fairpca.inference._estimates import Estimate, GroupEstimates
from fairpca.inference.chance import ChanceLoss, ChanceLosses, chance_losses
from fairpca.inference.cross_validation import GroupFigures, cross_validate_groups
from fairpca.inference.dominance import Dominance, dominant_parts
from fairpca.inference.permutation import DimensionTest, GroupChance, LossTest, loss_test

__all__ = [
    "ChanceLoss",
    "ChanceLosses",
    "DimensionTest",
    "Dominance",
    "Estimate",
    "GroupChance",
    "GroupEstimates",
    "GroupFigures",
    "LossTest",
    "chance_losses",
    "cross_validate_groups",
    "dominant_parts",
    "loss_test",
]
