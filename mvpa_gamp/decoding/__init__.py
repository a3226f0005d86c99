"""Who is compared with whom, on which rows, and how well it went."""

from .calibration import Calibration, FdrSelection, calibrate, fdr_refusal
from .crossval import HeldOut, cross_validate, fold_balanced_accuracies, fold_errors, held_out_answers
from .discoveries import planted_check, select_at_fdr
from .exchange import blocks_of_volumes, permuted_labels
from .folds import Folds, leave_one_run_out
from .group_tests import FlipMap, MeanTest, flip_map, mean_test
from .information import InformationMap, carries_information
from .leakage import Checked, Evidence, Finding, find_leakage
from .learning_curve import Extrapolation, LearningCurve, learning_curve
from .pattern import haufe_pattern
from .permutation import (
    NullStatistics,
    PermutationPlan,
    PermutationTest,
    holm,
    null_statistics,
    permutation_test,
    plan_permutations,
)
from .planted import PlantedCheck, PlantedEffect
from .regions import RegionTest, decode_regions, exact_sums
from .tasks import PAPER_PAIRS, Task, contrast_name, make_tasks, parse_pairs
from .whitened import fit_whitened
from .whitening import Whitening, fit_whitening, whitened_folds

__all__ = [
    "PAPER_PAIRS",
    "Calibration",
    "Checked",
    "Evidence",
    "Extrapolation",
    "FdrSelection",
    "Finding",
    "FlipMap",
    "Folds",
    "HeldOut",
    "InformationMap",
    "LearningCurve",
    "MeanTest",
    "NullStatistics",
    "PermutationPlan",
    "PermutationTest",
    "PlantedCheck",
    "PlantedEffect",
    "RegionTest",
    "Task",
    "Whitening",
    "blocks_of_volumes",
    "calibrate",
    "carries_information",
    "contrast_name",
    "cross_validate",
    "decode_regions",
    "exact_sums",
    "fdr_refusal",
    "find_leakage",
    "fit_whitened",
    "fit_whitening",
    "flip_map",
    "fold_balanced_accuracies",
    "fold_errors",
    "haufe_pattern",
    "held_out_answers",
    "holm",
    "learning_curve",
    "leave_one_run_out",
    "make_tasks",
    "mean_test",
    "null_statistics",
    "parse_pairs",
    "permutation_test",
    "permuted_labels",
    "plan_permutations",
    "planted_check",
    "select_at_fdr",
    "whitened_folds",
]
