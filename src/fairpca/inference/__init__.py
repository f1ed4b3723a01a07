"""Statistical inference on groups: comparison with chance, and statements about new rows that hold together."""

from fairpca.inference._claims import Claim
from fairpca.inference.cross_validation import GroupEvaluation, cross_validate_groups
from fairpca.inference.dominance import Dominance, dominant_parts
from fairpca.inference.permutation import GroupChance, LossTest, loss_test
from fairpca.inference.stability import ComponentStability, component_stability

__all__ = [
    "Claim",
    "ComponentStability",
    "Dominance",
    "GroupChance",
    "GroupEvaluation",
    "LossTest",
    "component_stability",
    "cross_validate_groups",
    "dominant_parts",
    "loss_test",
]
