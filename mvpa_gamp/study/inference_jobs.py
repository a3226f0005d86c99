"""What a worker does for inference in one go, with arrays as its answer, and the way back from arrays."""

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.balanced import mean_balanced_accuracy
from mvpa_gamp.decoding.calibration import FdrSelection, calibrate
from mvpa_gamp.decoding.discoveries import planted_check, planted_count
from mvpa_gamp.decoding.learning_curve import Extrapolation, LearningCurve, learning_curve
from mvpa_gamp.decoding.permutation import NullStatistics, null_statistics
from mvpa_gamp.decoding.planted import PlantedCheck, PlantedEffect
from mvpa_gamp.methods.fold_fits import Method

_FARTHER = (1.5, 2.0, 3.0)  # times the runs at hand, for which a learning curve is extrapolated

Arrays = dict[str, NDArray]


class NullChunk(NamedTuple):
    """Some permutations of one cell."""

    method: Method
    rows: NDArray
    labels: NDArray  # (m, k)
    max_inclusion: bool
    balanced: bool = False  # whether balanced accuracy is tested, which unequal categories call for

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """Scores of the k label vectors."""
        found = null_statistics(
            self.method, X, self.labels, runs, max_inclusion=self.max_inclusion, connectivity=connectivity,
            score=mean_balanced_accuracy if self.balanced else None,
        )  # fmt: skip
        inclusion = {} if found.max_inclusion is None else {"max_inclusion": found.max_inclusion}
        return {"score": found.score, "n_failed": np.array(found.n_failed), **inclusion}

    def read(self, arrays: Arrays) -> NullStatistics:
        """The way back."""
        return NullStatistics(arrays["score"], arrays.get("max_inclusion"), int(arrays["n_failed"]))


class Planting(NamedTuple):
    """The selection of one cell at a false-discovery rate, and the planted check of that rate."""

    method: Method
    rows: NDArray
    y: NDArray
    blocks: NDArray
    fdr: float
    seed: int

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """Strengths and selected voxels (N,); effects (K, 9) and what they were planted with."""
        given = self.method, X, self.y, runs
        calibration = calibrate(*given, seed=self.seed, blocks=self.blocks, connectivity=connectivity)
        chosen = calibration.select(self.fdr)
        arrays = {
            "strength": chosen.strength,
            "selected": chosen.selected,
            "chosen": np.array([chosen.estimate, chosen.pvalue, chosen.n, chosen.smallest]),
        }
        if chosen.smallest > self.fdr:  # nothing can be selected, whatever is planted
            return arrays
        found = planted_check(
            *given, n_planted=planted_count(X.shape[1]), fdr=self.fdr, blocks=self.blocks, seed=self.seed,
            connectivity=connectivity, calibration=calibration,
        )  # fmt: skip
        return arrays | {
            "effects": np.array(found.effects),
            "planted": np.array([found.n_planted, found.n_repeats, found.resemblance]),
        }

    def read(self, arrays: Arrays) -> tuple[FdrSelection, PlantedCheck | None]:
        """The way back."""
        estimate, pvalue, n, smallest = arrays["chosen"].tolist()
        maps = arrays["strength"], arrays["selected"]
        chosen = FdrSelection(
            self.method.name, self.fdr, *maps, estimate, pvalue, int(n), smallest, self.seed
        )
        if "planted" not in arrays:
            return chosen, None
        n_planted, n_repeats, resemblance = arrays["planted"].tolist()
        found = (PlantedEffect(*row) for row in arrays["effects"].tolist())
        effects = tuple(each._replace(n_repeats=int(each.n_repeats)) for each in found)
        sizes = int(n_planted), int(n_repeats), resemblance
        return chosen, PlantedCheck(self.method.name, self.fdr, *sizes, self.seed, effects)


class Curve(NamedTuple):
    """The learning curve of one cell."""

    method: Method
    rows: NDArray
    y: NDArray
    seed: int

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """The measured and the predicted curve, and how it goes on if that may be said."""
        found = learning_curve(self.method, X, self.y, runs, seed=self.seed, connectivity=connectivity)
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


InferenceWork = NullChunk | Planting | Curve
