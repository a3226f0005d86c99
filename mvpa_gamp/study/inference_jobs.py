"""What a worker does for inference in one go, with arrays as its answer, and the way back from arrays."""

from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.decoding.calibration import FdrSelection, calibrate
from mvpa_gamp.decoding.discoveries import planted_check, planted_count
from mvpa_gamp.decoding.learning_curve import Extrapolation, LearningCurve, learning_curve
from mvpa_gamp.decoding.null import LabelVectors, NullStatistics, null_statistics, prepared_null
from mvpa_gamp.decoding.planted import PlantedCheck, PlantedEffect
from mvpa_gamp.decoding.preparation import Preparation, prepared_by_all
from mvpa_gamp.decoding.tasks import Task
from mvpa_gamp.methods.fold_fits import Method

_FARTHER = (1.5, 2.0, 3.0)  # times the runs at hand, for which a learning curve is extrapolated

Arrays = dict[str, NDArray]


class NullChunk(NamedTuple):
    """Some permutations of one cell."""

    asked: LabelVectors

    @property
    def rows(self) -> NDArray:
        """Those of the comparison."""
        return self.asked.rows

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """Scores of the k label vectors."""
        method, _, labels, keep, score = self.asked
        how: dict[str, Any] = {"max_inclusion": keep, "score": score, "connectivity": connectivity}
        return stored_null(null_statistics(method, X, labels, runs, **how))


class PreparedNull(NamedTuple):
    """Some permutations of several cells, on X as each fold prepares it: they share every fold's X."""

    chunks: tuple[NullChunk, ...]
    preparation: Preparation
    prepared: NDArray  # rows of all cells, asked for or not: digits then do not depend on what is

    @property
    def rows(self) -> slice:
        """All samples: those of every condition help to prepare X."""
        return slice(None)

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> list[Arrays]:
        """Scores of each cell's label vectors."""
        asked = [chunk.asked for chunk in self.chunks]
        found = prepared_null(asked, X, runs, self.preparation, connectivity=connectivity, rows=self.prepared)
        return [stored_null(each) for each in found]


def read_null(arrays: Arrays) -> NullStatistics:
    """The permutations of a chunk, from their arrays."""
    score, auc, failed = (arrays[name] for name in ("score", "auc", "n_failed"))
    return NullStatistics(score, auc, arrays.get("max_inclusion"), failed)


def stored_null(found: NullStatistics) -> Arrays:
    """The permutations of a chunk, a row of every array each."""
    return {name: values for name, values in found._asdict().items() if values is not None}


class Planting(NamedTuple):
    """The selection of one cell at a false-discovery rate, and the planted check of that rate.

    Where folds prepare X, both are of X as the refit prepares it.
    """

    method: Method
    task: Task
    blocks: NDArray
    fdr: float
    seed: int
    preparation: Preparation | None = None

    @property
    def rows(self) -> NDArray | slice:
        """Those of the comparison, or all where X is prepared."""
        return self.task.rows if self.preparation is None else slice(None)

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """Strengths and selected voxels (N,); effects (K, 9) and what they were planted with."""
        if self.preparation is not None:
            X, runs = prepared_by_all(self.preparation, X, self.task.rows).X, runs[self.task.rows]
        given = self.method, X, self.task.y, runs
        calibration = calibrate(*given, seed=self.seed, blocks=self.blocks, connectivity=connectivity)
        chosen = calibration.select(self.fdr, of="voxel")
        arrays = {
            "strength": chosen.strength,
            "selected": chosen.selected,
            "chosen": np.array([chosen.estimate, chosen.pvalue, chosen.n, chosen.smallest]),
        }
        if chosen.smallest > self.fdr:  # nothing can be selected, whatever is planted
            return arrays
        found = planted_check(
            *given, n_planted=planted_count(X.shape[1]), fdr=self.fdr, blocks=self.blocks, seed=self.seed,
            connectivity=connectivity, calibration=calibration, of="voxel",
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
    preparation: Preparation | None = None

    @property
    def rows(self) -> NDArray | slice:
        """Those of the comparison, or all where X is prepared."""
        return self.task.rows if self.preparation is None else slice(None)

    def answer(self, X: NDArray, runs: NDArray, connectivity: Any) -> Arrays:
        """The measured and the predicted curve, and how it goes on if that may be said."""
        found = learning_curve(
            self.method, X, self.task.y, runs, seed=self.seed, connectivity=connectivity,
            preparation=self.preparation, rows=None if self.preparation is None else self.task.rows,
        )  # fmt: skip
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
