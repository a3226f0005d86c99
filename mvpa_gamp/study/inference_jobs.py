"""What a worker does for inference in one go, with arrays as its answer, and the way back from arrays."""

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.calibration import FdrSelection, calibrate
from mvpa_gamp.decoding.discoveries import Planting, planted_check, planted_count
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.learning_curve import Extrapolation, LearningCurve, learning_curve
from mvpa_gamp.decoding.null import LabelVectors, NullStatistics, joint_null
from mvpa_gamp.decoding.planted import PlantedCheck, PlantedEffect
from mvpa_gamp.decoding.preparation import Preparation
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.methods.fold_fits import Method

_FARTHER = (1.5, 2.0, 3.0)  # times the runs at hand, for which a learning curve is extrapolated

Arrays = dict[str, NDArray]


class NullWork(NamedTuple):
    """Some permutations of one cell or several, which then share every X that folds prepare."""

    asked: tuple[LabelVectors, ...]
    preparation: Preparation
    prepared: NDArray  # rows of all cells, asked for or not: digits then do not depend on what is

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> list[Arrays]:
        """Scores of each cell's label vectors."""
        scheme = Scheme(preparation=self.preparation, connectivity=connectivity)
        return [stored_null(each) for each in joint_null(self.asked, X, runs, scheme, rows=self.prepared)]


def read_null(arrays: Arrays) -> NullStatistics:
    """The permutations of a chunk, from their arrays."""
    score, auc, failed = (arrays[name] for name in ("score", "auc", "n_failed"))
    return NullStatistics(score, auc, arrays.get("max_inclusion"), failed)


def stored_null(found: NullStatistics) -> Arrays:
    """The permutations of a chunk, a row of every array each."""
    return {name: values for name, values in found._asdict().items() if values is not None}


class Selection(NamedTuple):
    """The selection of one cell at a false-discovery rate, and the planted check of that rate.

    Where folds prepare X, both are of X as the refit prepares it.
    """

    method: Method
    task: Task
    blocks: NDArray
    fdr: float
    seed: int
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """Strengths and selected voxels (N,); effects (K, 9) and what they were planted with."""
        scheme = Scheme(
            rows=self.task.rows, preparation=self.preparation, connectivity=connectivity, blocks=self.blocks,
            seed=self.seed,
        )  # fmt: skip
        given = self.method, X, self.task.y, runs, scheme
        calibration = calibrate(*given)
        chosen = calibration.select(self.fdr, of="voxel")
        arrays = {
            "strength": chosen.strength,
            "selected": chosen.selected,
            "chosen": np.array([chosen.estimate, chosen.pvalue, chosen.n, chosen.smallest]),
        }
        if chosen.smallest > self.fdr:  # nothing can be selected, whatever is planted
            return arrays
        planting = Planting(planted_count(X.shape[1]))
        found = planted_check(*given, planting, fdr=self.fdr, calibration=calibration, of="voxel")
        return arrays | {
            "effects": np.array(found.effects),
            "planted": np.array([found.n_planted, found.n_repeats, found.resemblance]),
        }

    def read(self, arrays: Arrays) -> tuple[FdrSelection, PlantedCheck | None]:
        """The way back."""
        estimate, pvalue, n, smallest = arrays["chosen"].tolist()
        maps = arrays["strength"], arrays["selected"]
        chosen = FdrSelection(
            self.method.name, self.fdr, *maps, estimate, pvalue, int(n), smallest, self.seed, of="voxel"
        )
        if "planted" not in arrays:
            return chosen, None
        n_planted, n_repeats, resemblance = arrays["planted"].tolist()
        found = (PlantedEffect(*row) for row in arrays["effects"].tolist())
        effects = tuple(each._replace(n_repeats=int(each.n_repeats)) for each in found)
        sizes = int(n_planted), int(n_repeats), resemblance
        return chosen, PlantedCheck(self.method.name, self.fdr, *sizes, self.seed, effects, of="voxel")


class Curve(NamedTuple):
    """The learning curve of one cell."""

    method: Method
    task: Task
    seed: int
    preparation: Preparation

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """The measured and the predicted curve, and how it goes on if that may be said."""
        scheme = Scheme(None, self.task.rows, self.preparation, connectivity, seed=self.seed)
        found = learning_curve(self.method, X, self.task.y, runs, scheme)
        sizes = [] if found.refusal else [round(share * found.n_runs) for share in _FARTHER]
        farther = [found.extrapolate(size) for size in sizes]
        stored = {f.name: np.asarray(getattr(found, f.name)) for f in fields(found) if f.name != "model"}
        return {**stored, "farther": np.array(farther).reshape(-1, len(Extrapolation._fields))}

    def read(self, arrays: Arrays) -> tuple[LearningCurve, tuple[Extrapolation, ...]]:
        """The way back."""
        known: dict[str, Any] = {
            f.name: arrays[f.name] if arrays[f.name].ndim else arrays[f.name].item()
            for f in fields(LearningCurve)
            if f.name != "model"
        }
        farther = tuple(Extrapolation(int(runs), *values) for runs, *values in arrays["farther"].tolist())
        return LearningCurve(**known, model=None), farther
