"""A participant of a BIDS dataset: fMRIPrep derivatives (or raw volumes) and events in, Samples out.

A sample is a volume ("tr"), the mean of the volumes of an event ("block"), the effect of an event in a model
of its run ("trial", see trials.py), or a given map ("betas", see betas.py). Runs are numbered 1, 2, ...
across sessions and tasks.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from mvpa_gamp.decoding.designs import ALL
from mvpa_gamp.imaging.bids.confounds import AROMA, check_strategy, confound_columns
from mvpa_gamp.imaging.bids.events import wanted_categories
from mvpa_gamp.imaging.bids.layout import (
    Layout,
    RunFiles,
    check_surface_settings,
    find_layout,
    find_runs,
    repetition_time_of,
)
from mvpa_gamp.imaging.bids.participant import load_participant
from mvpa_gamp.imaging.bids.selection import PREPROCESSED, Selection, read_filters
from mvpa_gamp.imaging.bids.trials import TrialModel
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.samples import Samples
from mvpa_gamp.imaging.source import Source

HAEMODYNAMIC_DELAY = 5.0  # s, to the peak of the usual response; the default lag is the nearest number of TRs
DEFAULT_CONFOUNDS = ("motion6",)  # of derivatives; raw datasets have none
CV = ("run", "session")  # what cross-validation holds out


def default_lag(t_r: float) -> int:
    """The lag in volumes: the number nearest to the haemodynamic delay (the larger of two), at least one.

    Parameters
    ----------
    t_r
        Seconds per volume.

    Returns
    -------
    int
        Volumes.

    Examples
    --------
    >>> from mvpa_gamp.imaging.bids.source import default_lag
    >>> default_lag(2.0)
    3
    """
    return max(1, math.floor(HAEMODYNAMIC_DELAY / t_r + 0.5))


_Bids = TypeVar("_Bids", bound="BidsSource")


@dataclass(frozen=True, kw_only=True)
class BidsSource(Source):
    """A participant of a BIDS dataset: volumes, or means over events, labelled by events.tsv.

    ``derivatives`` is fMRIPrep's output (default: BIDS_DIR/derivatives/fmriprep if it is there), or "none".
    No task or space: the only one there is; no session or run: all. ``pairs`` are "a:b" texts, or ("all",):
    events of conditions that neither these nor ``classes`` and ``cross`` name are not decoded. ``confounds``
    are names of sets or columns, wildcards allowed, in place of a ``confounds_strategy`` of nilearn's. ``cv``
    "session" leaves one session out instead of one run. Without a mask the voxels are those that all runs'
    brain masks have in common. Lag None: the nearest number of TRs to 5 s; ``samples`` "trial" need none,
    theirs is a model of the response. Spaces such as fsaverage5 and fsLR are of surfaces, whose meshes are
    those of ``surface_mesh``, left and right; those of fsaverage5 are known.
    """

    bids_dir: str = ""
    derivatives: str = ""
    participant_label: str = ""
    task: tuple[str, ...] = ()
    session_label: tuple[str, ...] = ()
    run_label: tuple[str, ...] = ()
    bids_filter_file: str = ""
    space: str | None = None
    samples: str = "tr"
    trial_model: str = ""
    hrf_model: str = ""
    drift_model: str = ""
    cv: str = "run"
    pairs: tuple[str, ...] = ALL
    classes: tuple[str, ...] = ()
    cross: tuple[str, ...] = ()
    confounds: tuple[str, ...] = ()
    confounds_strategy: str = ""
    mask: str = ""
    surface_mesh: tuple[str, ...] = ()
    lag_trs: int | None = None

    name = "a BIDS dataset"
    paths: ClassVar[tuple[str, ...]] = ("bids_dir", "derivatives", "mask", "bids_filter_file", "surface_mesh")
    words = ("none",)
    kinds: ClassVar[tuple[str, ...]] = ("tr", "block", "trial")

    def __post_init__(self) -> None:
        for name in ("task", "session_label", "run_label"):
            if isinstance(getattr(self, name), str):  # one value need not be a tuple
                object.__setattr__(self, name, (getattr(self, name),))

    @property
    def layout(self) -> Layout:
        """The dataset's folders."""
        return find_layout(self.bids_dir, self.derivatives)

    def dataset(self: _Bids) -> _Bids:
        """The settings that all participants share, with nothing left to defaults but their lag."""
        for option, value, known in (("samples", self.samples, self.kinds), ("cv", self.cv, CV)):
            if value not in known:
                raise DataError(
                    f"--{option}: expected {', '.join(known)}, got {value!r}. Choose one of them."
                )
        self.processing()  # refuses what has no meaning
        check_surface_settings(self)
        self.selection()
        layout = self.layout
        check_strategy(self.confounds_strategy, self.confounds, layout.derivatives is not None)
        usual = DEFAULT_CONFOUNDS if layout.derivatives and not self.confounds_strategy else ("none",)
        confounds = self.confounds or usual
        confound_columns(confounds)
        derivatives = str(layout.derivatives or "none")
        return replace(
            self.absolute(), derivatives=derivatives, confounds=confounds, **self._trial_settings()
        )

    def _trial_settings(self) -> dict[str, Any]:
        """What models of trials are told; refused where there is nothing to model."""
        if self.samples == "trial":
            if self.lag_trs:
                raise DataError(
                    "--lag-trs does not apply to --samples trial: the response is modelled. Leave it out."
                )
            model = self.model
            return {
                "trial_model": model.kind,
                "hrf_model": model.hrf,
                "drift_model": model.drift,
                "lag_trs": 0,
            }
        for name in ("trial_model", "hrf_model", "drift_model"):
            if getattr(self, name):
                option = "--" + name.replace("_", "-")
                raise DataError(f"{option} is for --samples trial, got {self.samples}. Leave it out.")
        return {}

    @property
    def model(self) -> TrialModel:
        """How trials are modelled."""
        usual = TrialModel()
        return TrialModel(
            self.trial_model or usual.kind,
            self.hrf_model or usual.hrf,
            self.drift_model or usual.drift,
            self.high_pass or usual.high_pass,
        )

    def selection(self) -> Selection:
        """Which series are decoded."""
        return Selection(
            tasks=self.task,
            sessions=self.session_label,
            runs=self.run_label,
            space=self.space,
            desc=AROMA if self.confounds_strategy == "ica_aroma" else PREPROCESSED,
            filters=read_filters(self.bids_filter_file),
        )

    def resolve(self: _Bids) -> _Bids:
        """The settings of one participant; the default lag follows from the time between its volumes."""
        if not self.participant_label:
            raise DataError("A BIDS dataset needs --participant-label. Give one.")
        ready = replace(self.dataset(), participant_label=self.participant_label.removeprefix("sub-"))
        if ready.lag_trs is not None:
            return ready
        return replace(ready, lag_trs=default_lag(repetition_time_of(ready.runs(), ready.t_r)))

    def runs(self) -> list[RunFiles]:
        """The participant's runs."""
        return find_runs(self.layout, self.participant_label, self.selection())

    def wanted(self, found: Collection[str]) -> set[str]:
        """The conditions among those found that are compared."""
        return wanted_categories(self.pairs, found, self.classes, self.cross)

    @property
    def asks_for_all(self) -> bool:
        """Whether whatever conditions there are shall be compared."""
        return ALL in (self.pairs, self.classes)

    def load(self) -> Samples:
        """Samples of the participant."""
        return load_participant(self.resolve())
