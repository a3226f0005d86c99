"""Who is compared with whom, on which rows, and how well it went."""

from .calibration import Calibration, FdrSelection, calibrate, fdr_refusal
from .cross import CrossDecoding, cross_decode, cross_permutation_test
from .designs import Classes, Cross, make_classes, make_crosses, parse_classes, session_crosses
from .discoveries import PlantedCheck, PlantedEffect, Planting, planted_check, select_at_fdr
from .exchange import blocks_of_volumes, permuted_labels
from .fit import Scheme, cross_validate, fit_tasks, haufe_pattern
from .folds import Folds, leave_one_run_out
from .group import FlipMap, MeanTest, flip_map, mean_test
from .leakage import Checked, Evidence, Finding, find_leakage
from .learning_curve import Extrapolation, LearningCurve, learning_curve
from .localisation import InformationMap, RegionTest, carries_information, decode_regions, exact_sums
from .null import LabelVectors, NullStatistics, joint_null, null_statistics
from .permutation import PermutationPlan, PermutationTest, holm, permutation_test, plan_permutations
from .preparation import (
    ConfoundRegression,
    FoldConfounds,
    InSequence,
    NoiseWhitening,
    Preparation,
    Prepared,
    Unchanged,
    fit_confounds,
    prepared_by_all,
)
from .scores import HeldOut, fold_balanced_accuracies, fold_errors, held_out_answers
from .tasks import PAPER_PAIRS, Side, Task, contrast_name, make_tasks, parse_pairs, read_side
from .ties import CovariateCheck, check_covariates
from .whitening import Whitening, fit_whitening, whitened_folds

__all__ = [
    "PAPER_PAIRS",
    "Calibration",
    "Checked",
    "Classes",
    "ConfoundRegression",
    "CovariateCheck",
    "Cross",
    "CrossDecoding",
    "Evidence",
    "Extrapolation",
    "FdrSelection",
    "Finding",
    "FlipMap",
    "FoldConfounds",
    "Folds",
    "HeldOut",
    "InSequence",
    "InformationMap",
    "LabelVectors",
    "LearningCurve",
    "MeanTest",
    "NoiseWhitening",
    "NullStatistics",
    "PermutationPlan",
    "PermutationTest",
    "PlantedCheck",
    "PlantedEffect",
    "Planting",
    "Preparation",
    "Prepared",
    "RegionTest",
    "Scheme",
    "Side",
    "Task",
    "Unchanged",
    "Whitening",
    "blocks_of_volumes",
    "calibrate",
    "carries_information",
    "check_covariates",
    "contrast_name",
    "cross_decode",
    "cross_permutation_test",
    "cross_validate",
    "decode_regions",
    "exact_sums",
    "fdr_refusal",
    "find_leakage",
    "fit_confounds",
    "fit_tasks",
    "fit_whitening",
    "flip_map",
    "fold_balanced_accuracies",
    "fold_errors",
    "haufe_pattern",
    "held_out_answers",
    "holm",
    "joint_null",
    "learning_curve",
    "leave_one_run_out",
    "make_classes",
    "make_crosses",
    "make_tasks",
    "mean_test",
    "null_statistics",
    "parse_classes",
    "parse_pairs",
    "permutation_test",
    "permuted_labels",
    "plan_permutations",
    "planted_check",
    "prepared_by_all",
    "read_side",
    "select_at_fdr",
    "session_crosses",
    "whitened_folds",
]
