"""Single trials: a general linear model per run, one map of effects per event.

"lsa" (least squares, all): every trial has a regressor of its own in one model. "lss" (least squares,
separate; Mumford et al. 2012): a model per trial, with one regressor for the trial, one for the other trials
of its condition and one for each other condition; steadier where trials follow each other closely. Events of
conditions that are not decoded are modelled too.

Effects are those of nilearn's FirstLevelModel without a noise model ("ols"): its designs, its scaling, but
only the one row of the pseudo-inverse that gives a trial's effect. The class itself fits all regressors and
residuals of all voxels once per trial, which takes 16 times as long (24 trials, 150 volumes, 40,000 voxels).

Every run is scaled by itself, however few trials it has: effects are z-scored over the compared trials of
their run. A run of a block design may have only two: then effects are centred. What is possible in every run
is done to all, so that runs have one unit. Other events do not count: effects of short ones (buttons) can be
a hundred times as large.
"""

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mvpa_gamp.imaging.bids.events import Event
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.processing import MIN_VOLUMES, Nuisance, Processing, clean_run

TRIAL_MODELS = ("lss", "lsa")
HRF_MODELS = (
    "glover", "spm", "glover + derivative", "spm + derivative", "glover + derivative + dispersion",
    "spm + derivative + dispersion",
)  # fmt: skip
DRIFT_MODELS = ("cosine", "polynomial", "none")
DEFAULT_HIGH_PASS = 0.01  # Hz, of the cosine drifts: nilearn's default, periods above 100 s
_SEEN = 1e-3  # of the largest response: a regressor below it was not scanned
_Z_SCORES = Processing(detrend=False, standardize=True)


@dataclass(frozen=True)
class TrialModel:
    """How trials are modelled; names of response and drift models are nilearn's."""

    kind: str = "lss"
    hrf: str = "glover"
    drift: str = "cosine"
    high_pass: float = DEFAULT_HIGH_PASS

    def __post_init__(self) -> None:
        for option, value, known in (
            ("--trial-model", self.kind, TRIAL_MODELS),
            ("--hrf-model", self.hrf, HRF_MODELS),
            ("--drift-model", self.drift, DRIFT_MODELS),
        ):
            if value not in known:
                raise DataError(f"{option}: expected one of {', '.join(known)}, got {value!r}. Choose one.")


@dataclass(frozen=True)
class RunTrials:
    """The trials of one run whose response was scanned, and how many were not."""

    events: tuple[Event, ...]
    effects: NDArray  # (n, N) in per cent of the voxel's mean
    unseen: int


def run_trials(
    values: NDArray,
    times: NDArray,
    events: Sequence[Event],
    wanted: Collection[str],
    nuisance: Nuisance,
    model: TrialModel,
    run: Any,
) -> RunTrials:
    """One effect per event of a ``wanted`` condition in the volumes (T, N) of a run, taken at ``times`` (T,).

    The design has drifts and the confounds of the run; volumes that are not used do not count.
    """
    trials = [k for k, event in enumerate(events) if event.trial_type in wanted]
    designs = _Designs(times, events, trials, nuisance, model)
    weights = {k: row for k in trials if (row := designs.weights_of(k)) is not None}
    scaled = _percent(np.asarray(values, dtype=np.float64)[nuisance.used])
    if len(scaled) <= designs.n_columns:
        raise DataError(
            f"run {run}: {designs.n_columns} regressors are too many for its {len(scaled)} volumes. Give "
            f"fewer confounds, {'--trial-model lss, ' if model.kind == 'lsa' else ''}or longer runs."
        )
    rows = np.array(list(weights.values())).reshape(len(weights), len(scaled))
    return RunTrials(tuple(events[k] for k in weights), rows @ scaled, len(trials) - len(weights))


def _percent(values: NDArray) -> NDArray:
    """Per cent of the mean of each voxel, less 100, as nilearn's models scale them."""
    mean = values.mean(axis=0)
    safe = np.where(np.abs(mean) > np.finfo(np.float32).tiny, mean, 1.0)
    return 100 * (values / safe - 1)


class _Designs:
    """The designs of a run: one for all trials, or one per trial."""

    def __init__(
        self,
        times: NDArray,
        events: Sequence[Event],
        trials: Sequence[int],
        nuisance: Nuisance,
        model: TrialModel,
    ) -> None:
        self._times, self._events, self._trials, self._model = times, events, trials, model
        self._used, self._confounds = nuisance.used, nuisance.filled()[0]
        self._shared: _Solved | None = None
        self.n_columns = 0

    def weights_of(self, trial: int) -> NDArray | None:
        """The row (T_used,) whose product with the volumes is the trial's effect; None if it is not seen."""
        if self._model.kind == "lss":
            solved = self._solved(_separate(self._events, trial))
        else:
            solved = self._shared = self._shared or self._solved(_together(self._events, self._trials))
        self.n_columns = max(self.n_columns, solved.inverse.shape[0])
        column = solved.names.index(_own(trial))
        return solved.inverse[column] if solved.largest[column] >= _SEEN * solved.largest.max() else None

    def _solved(self, names: Sequence[str]) -> "_Solved":
        import pandas
        from nilearn.glm.first_level import make_first_level_design_matrix

        table = pandas.DataFrame(
            {
                "onset": [event.onset for event in self._events],
                "duration": [event.duration for event in self._events],
                "trial_type": names,
            }
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # events of no duration are impulses; full designs
            frame = make_first_level_design_matrix(
                self._times,
                table,
                hrf_model=self._model.hrf,
                drift_model=None if self._model.drift == "none" else self._model.drift,
                high_pass=self._model.high_pass,
                add_regs=self._confounds,
            )
        design = frame.to_numpy(dtype=float)[self._used]
        of_events = np.isin(frame.columns, names)
        largest = np.where(of_events, np.abs(design).max(axis=0), 0.0)
        return _Solved(list(frame.columns), largest, np.linalg.pinv(design))


class _Solved(NamedTuple):
    """A design on the volumes used: names of its P columns, their largest values, its pseudo-inverse."""

    names: list[str]
    largest: NDArray  # (P,) 0 of columns that are no event's
    inverse: NDArray  # (P, T)


def _own(trial: int) -> str:
    return f"trial_{trial}"


def _conditions(events: Sequence[Event]) -> list[str]:
    """A name for the condition of every event; nilearn wants identifiers."""
    known = sorted({event.trial_type for event in events})
    return [f"condition_{known.index(event.trial_type)}" for event in events]


def _together(events: Sequence[Event], trials: Collection[int]) -> list[str]:
    """A regressor of its own for every trial; events of other conditions share theirs."""
    return [_own(k) if k in trials else name for k, name in enumerate(_conditions(events))]


def _separate(events: Sequence[Event], trial: int) -> list[str]:
    """A regressor for one trial, one for the others of its condition, one for each other condition."""
    return [_own(k) if k == trial else name for k, name in enumerate(_conditions(events))]


class TrialScaling(NamedTuple):
    """What is done to the effects of every run, in words for the methods text and for a note."""

    words: str = ""
    note: str = ""


CENTRED = TrialScaling(
    "centred within each run",
    f"A run has fewer than {MIN_VOLUMES} trials, too few for z-scores: trials were centred within their run.",
)


Z_SCORED = TrialScaling("z-scored within each run")


RAW = TrialScaling()


def scaling_for(counts: Sequence[int], standardize: bool) -> TrialScaling:
    """What numbers of compared trials allow in run 1, 2, ...; a run without any has none to scale."""
    used = [count for count in counts if count]
    if not standardize or not used:
        return RAW
    if min(used) >= MIN_VOLUMES:
        return Z_SCORED
    if 1 in used:
        raise DataError(
            "--standardize: expected at least 2 trials of the compared conditions in every run, got 1 in run "
            f"{list(counts).index(1) + 1}, of which centring leaves nothing. Give --no-standardize, or leave "
            "the run out (--run-label)."
        )
    return CENTRED


def scale_run(effects: NDArray, scaling: TrialScaling, run: int) -> NDArray:
    """The effects (n, N) of a run's trials, scaled."""
    if scaling is RAW or not len(effects):
        return effects
    if scaling is CENTRED:
        return np.asarray(effects - effects.mean(axis=0))
    return clean_run(effects, _Z_SCORES, None, None, run)
