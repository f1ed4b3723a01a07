"""What chance alone would show, and what holds on new rows."""

from fairpca.inference._checks import CountedRows, check_clusters, seed_of
from fairpca.inference._cross_fits import fit_without_folds
from fairpca.inference._display import TableResult, number, p_text, with_interval
from fairpca.inference._estimates import Estimate, GroupEstimates
from fairpca.inference._fitting import fit_rows, fit_to_moments, needs_moments_only
from fairpca.inference._fold_study import FoldStudy
from fairpca.inference._folds import held_out_part, make_folds
from fairpca.inference.chance import ChanceLoss, ChanceLosses, chance_losses
from fairpca.inference.cross_validation import GroupFigures, cross_validate_groups, group_figures
from fairpca.inference.permutation import DimensionTest, GroupChance, LossTest, loss_test

__all__ = [
    "ChanceLoss",
    "ChanceLosses",
    "CountedRows",
    "DimensionTest",
    "Estimate",
    "FoldStudy",
    "GroupChance",
    "GroupEstimates",
    "GroupFigures",
    "LossTest",
    "TableResult",
    "chance_losses",
    "check_clusters",
    "cross_validate_groups",
    "fit_rows",
    "fit_to_moments",
    "fit_without_folds",
    "group_figures",
    "held_out_part",
    "loss_test",
    "make_folds",
    "needs_moments_only",
    "number",
    "p_text",
    "seed_of",
    "with_interval",
]
