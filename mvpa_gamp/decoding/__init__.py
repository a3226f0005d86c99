"""Who is compared with whom, on which rows, and how well it went."""

from .crossval import CrossValidation, Prediction, cross_validate
from .folds import Folds, leave_one_run_out
from .tasks import PAPER_PAIRS, Task, contrast_name, make_tasks, parse_pairs

__all__ = [
    "PAPER_PAIRS",
    "CrossValidation",
    "Folds",
    "Prediction",
    "Task",
    "contrast_name",
    "cross_validate",
    "leave_one_run_out",
    "make_tasks",
    "parse_pairs",
]
