"""The numbers of the paper's Haxby table, as printed: six comparisons, four methods, four measures."""

from collections.abc import Mapping

# The paper's columns, and the methods of this package that stand for them. Its "BG-LR" column is called
# Bernoulli-Laplace in the text, so gamp-bl-lr may be set beside it too.
COLUMNS: Mapping[str, str] = {
    "l1-lr-cv": "TFOCS",
    "gamp-l1-lr": "L1-LR",
    "gamp-bg-lr": "BG-LR",
    "gamp-bl-lr": "BG-LR",
    "onebit-cs": "1-Bit",
}
ORDER = ("TFOCS", "L1-LR", "BG-LR", "1-Bit")
VOXELS = 31_398

# Comparison: measure: one number per column of ORDER.
PRINTED: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "cat vs scissors": {
        "error_percent": (9.7, 11.1, 9.3, 5.1),
        "sparsity_percent": (0.1, 0.07, 0.01, 0.12),
        "consistency_percent": (38, 43, 60, 57),
        "seconds": (1318, 137, 21, 202),
    },
    "cat vs shoe": {
        "error_percent": (6.1, 6.1, 11.6, 6.5),
        "sparsity_percent": (0.14, 0.07, 0.01, 0.12),
        "consistency_percent": (34, 47, 60, 59),
        "seconds": (1347, 191, 24, 205),
    },
    "cat vs house": {
        "error_percent": (0.4, 0.0, 1.4, 3.7),
        "sparsity_percent": (0.04, 0.02, 0.01, 0.12),
        "consistency_percent": (53, 87, 84, 75),
        "seconds": (1364, 144, 18, 202),
    },
    "bottle vs shoe": {
        "error_percent": (29.6, 30.5, 23.6, 20.4),
        "sparsity_percent": (0.2, 0.1, 0.01, 0.12),
        "consistency_percent": (23, 31, 36, 53),
        "seconds": (1417, 166, 22, 205),
    },
    "bottle vs chair": {
        "error_percent": (13.9, 13.9, 15.7, 26.9),
        "sparsity_percent": (0.1, 0.07, 0.01, 0.12),
        "consistency_percent": (30, 45, 61, 37),
        "seconds": (1355, 150, 21, 203),
    },
    "face vs chair": {
        "error_percent": (0.9, 0.9, 6.9, 2.8),
        "sparsity_percent": (0.09, 0.05, 0.01, 0.12),
        "consistency_percent": (43, 67, 68, 76),
        "seconds": (1362, 125, 24, 205),
    },
    "average": {
        "error_percent": (10.1, 10.4, 11.4, 10.9),
        "sparsity_percent": (0.11, 0.06, 0.01, 0.12),
        "consistency_percent": (37, 53, 62, 60),
        "seconds": (1358, 152, 22, 204),
    },
}


def printed(comparison: str, method: str, measure: str) -> float | None:
    """The paper's number for one of our methods, or None where it has none."""
    column = COLUMNS.get(method)
    if column is None or comparison not in PRINTED:
        return None
    return PRINTED[comparison][measure][ORDER.index(column)]
