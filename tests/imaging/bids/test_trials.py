"""Single-trial effects: against designs written out by hand and against nilearn's model."""

import nibabel
import numpy as np
import pandas
import pytest
from nilearn.glm.first_level import FirstLevelModel, compute_regressor
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.svm import SVC

from mvpa_gamp.imaging.bids.events import Event
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.bids.trials import (
    CENTRED,
    RAW,
    Z_SCORED,
    TrialModel,
    run_trials,
    scale_run,
    scaling_for,
)
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.processing import Nuisance

T_R, N_VOLUMES = 2.0, 60
TIMES = T_R * np.arange(N_VOLUMES)
EVENTS = [
    Event(4.0, 3.0, "face", 2), Event(14.0, 3.0, "house", 3), Event(22.0, 0.5, "button", 4),
    Event(30.0, 3.0, "face", 5), Event(41.0, 3.0, "face", 6), Event(60.0, 3.0, "house", 7),
]  # fmt: skip


def nothing(n=N_VOLUMES):
    return Nuisance(np.empty((n, 0)), np.ones(n, dtype=bool))


@pytest.fixture
def run():
    """Volumes (60, 4) with a mean, drifts and noise."""
    rng = np.random.default_rng(0)
    return 100 + 5 * rng.standard_normal((N_VOLUMES, 4)) + np.linspace(0, 3, N_VOLUMES)[:, None]


def by_hand(events, extra):
    """Regressors of groups of events, then cosine drifts, a constant and ``extra``."""
    columns = [
        compute_regressor(
            np.array([[e.onset for e in g], [e.duration for e in g], np.ones(len(g))]), "glover", TIMES
        )[0][:, 0]
        for g in events
    ]
    order = int(np.floor(2 * N_VOLUMES * 0.01 * T_R))  # periods above 100 s
    n = np.arange(N_VOLUMES)
    drifts = [np.sqrt(2 / N_VOLUMES) * np.cos(np.pi / N_VOLUMES * (n + 0.5) * k) for k in range(1, order + 1)]
    return np.column_stack([*columns, *extra.T, *drifts, np.ones(N_VOLUMES)])


def effect_of_first(values, design, kept):
    percent = 100 * (values[kept] / values[kept].mean(axis=0) - 1)
    return np.linalg.lstsq(design[kept], percent, rcond=None)[0][0]


def test_separate_models_equal_a_design_written_out_by_hand(run):
    rng = np.random.default_rng(1)
    kept = np.ones(N_VOLUMES, dtype=bool)
    kept[[0, 17]] = False
    nuisance = Nuisance(rng.standard_normal((N_VOLUMES, 2)), kept)
    found = run_trials(run, TIMES, EVENTS, {"face", "house"}, nuisance, TrialModel("lss"), 1)
    assert [event.line for event in found.events] == [2, 3, 5, 6, 7] and found.unseen == 0
    for row, event in zip(found.effects, found.events, strict=True):
        others = [
            [e for e in EVENTS if e is not event and e.trial_type == name]
            for name in ("face", "house", "button")
        ]
        design = by_hand([[event], *others], nuisance.values)
        np.testing.assert_allclose(row, effect_of_first(run, design, kept), rtol=1e-9, atol=1e-10)


def test_one_model_for_all_equals_a_design_written_out_by_hand(run):
    found = run_trials(run, TIMES, EVENTS, {"face", "house"}, nothing(), TrialModel("lsa"), 1)
    trials = [event for event in EVENTS if event.trial_type != "button"]
    for k, row in enumerate(found.effects):
        groups = [[trials[k]], *([e] for e in trials if e is not trials[k]), [EVENTS[2]]]
        design = by_hand(groups, np.empty((N_VOLUMES, 0)))
        expected = effect_of_first(run, design, np.ones(N_VOLUMES, dtype=bool))
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.filterwarnings("ignore:.*mask was given at masker creation:RuntimeWarning")
def test_effects_are_those_of_nilearns_first_level_model(run):
    found = run_trials(run, TIMES, EVENTS, {"face", "house"}, nothing(), TrialModel("lsa"), 1)
    image = nibabel.Nifti1Image(run.T.reshape(2, 2, 1, N_VOLUMES), np.eye(4))
    mask = nibabel.Nifti1Image(np.ones((2, 2, 1), dtype=np.uint8), np.eye(4))
    names = [f"t{k}" if e.trial_type != "button" else "button" for k, e in enumerate(EVENTS)]
    table = pandas.DataFrame(
        {
            "onset": [e.onset for e in EVENTS],
            "duration": [e.duration for e in EVENTS],
            "trial_type": names,
        }
    )
    model = FirstLevelModel(
        t_r=T_R, slice_time_ref=0.0, mask_img=mask, noise_model="ols", smoothing_fwhm=None
    )
    model.fit(image, table)
    for row, name in zip(found.effects, [n for n in names if n != "button"], strict=True):
        theirs = np.asarray(model.compute_contrast(name, output_type="effect_size").dataobj).reshape(-1)
        np.testing.assert_allclose(row, theirs, rtol=1e-5, atol=1e-6)


def test_events_that_were_not_scanned_are_counted_and_full_designs_refused(run):
    late = [*EVENTS, Event(500.0, 3.0, "face", 9)]
    found = run_trials(run, TIMES, late, {"face", "house"}, nothing(), TrialModel(), 1)
    assert found.unseen == 1 and len(found.events) == 5
    full = Nuisance(np.random.default_rng(2).standard_normal((8, 6)), np.ones(8, dtype=bool))
    with pytest.raises(DataError, match=r"run 3: 8 regressors are too many for its 8 volumes\. Give fewer"):
        run_trials(run[:8], TIMES[:8], EVENTS[:1], {"face"}, full, TrialModel(), 3)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kind": "ridge"}, "--trial-model: expected one of lss, lsa, got 'ridge'"),
        ({"hrf": "box"}, "--hrf-model: expected one of glover, spm, .*, got 'box'"),
        ({"drift": "spline"}, "--drift-model: expected one of cosine, polynomial, none, got 'spline'"),
    ],
)
def test_unknown_models_are_refused(settings, sentence):
    with pytest.raises(DataError, match=sentence):
        TrialModel(**settings)


def test_trials_of_a_dataset_are_samples_that_know_their_event(bids_tree):
    given = {"bids_dir": str(bids_tree.root), "participant_label": "01", "pairs": ("face:house", "face:cat")}
    samples = BidsSource(**given, samples="trial").load()
    assert samples.kind == "trial" and samples.plural == "single trials" and samples.volumes is None
    assert samples.X.shape[0] == 3 * 6 and set(samples.events) == {"onset", "duration", "event_line"}
    table = (bids_tree.func("01") / f"{bids_tree.stem('01', 2)}_events.tsv").read_text().splitlines()
    for k in np.flatnonzero(samples.runs == 2):
        onset, duration, name, _ = table[samples.events["event_line"][k] - 1].split("\t")
        assert (float(onset), name) == (samples.events["onset"][k], samples.conditions[k])
        assert float(duration) == samples.events["duration"][k]
    raw = BidsSource(**given | {"pairs": ("face:house",)}, samples="trial", standardize=False).load()
    assert len(raw.X) == 2 * 6
    with pytest.raises(DataError, match="--lag-trs does not apply to --samples trial"):
        BidsSource(**given, samples="trial", lag_trs=2).load()
    with pytest.raises(DataError, match="--trial-model is for --samples trial, got block"):
        BidsSource(**given, samples="block", trial_model="lss").load()


def test_two_trials_of_a_run_are_centred(bids_tree):
    """The phantom has an effect; its button presses do not count."""
    given = {"bids_dir": str(bids_tree.root), "participant_label": "01", "samples": "trial"}
    given |= {"pairs": ("face:house",)}
    samples, raw = BidsSource(**given).load(), BidsSource(**given, standardize=False).load()
    assert any("trials were centred within their run" in note for note in samples.notes)
    assert not any("centred" in note for note in raw.notes) and raw.provenance["trial_scaling"] == ""
    for run in np.unique(samples.runs):
        mine = raw.X[raw.runs == run]
        np.testing.assert_allclose(samples.X[samples.runs == run], mine - mine.mean(axis=0), atol=1e-5)
    folds = {"groups": samples.runs, "cv": LeaveOneGroupOut()}
    scores = cross_val_score(SVC(kernel="linear"), samples.X, samples.conditions, **folds)
    assert scores.mean() > 0.7


def test_the_scaling_is_the_best_one_that_every_run_allows():
    assert scaling_for([3, 4], True) is Z_SCORED and scaling_for([2, 8], True) is CENTRED
    assert scaling_for([1, 2], False) is RAW and scaling_for([0, 3], True) is Z_SCORED
    with pytest.raises(DataError, match=r"--standardize: .* got 1 in run 2, .* Give --no-standardize"):
        scaling_for([2, 1], True)


@pytest.mark.parametrize(("scaling", "least", "most"), [(CENTRED, 75, 100), (RAW, 50, 85)])
def test_scaling_finds_a_planted_effect_and_nothing_where_there_is_none(scaling, least, most):
    """Two trials in each of eight runs whose levels differ: 30 datasets with an effect, 30 without."""

    def accuracy(effect, seed):
        rng = np.random.default_rng(seed)
        spread, level = rng.lognormal(0, 0.5, 200), rng.normal(size=(8, 1, 200))
        values = (rng.normal(size=(8, 3, 200)) + level) * spread
        pattern = np.zeros(200)
        pattern[:20] = effect * rng.choice([-1, 1], 20)
        values[:, 0] += pattern / 2
        values[:, 1] -= pattern / 2
        X = [scale_run(each[:2], scaling, k) for k, each in enumerate(values, start=1)]
        alone = scale_run(values[5][:2], scaling, 1)
        np.testing.assert_array_equal(X[5], alone)  # whatever the other runs are
        y, runs = np.tile([0, 1], 8), np.repeat(np.arange(8), 2)
        return (
            100
            * cross_val_score(
                SVC(kernel="linear"), np.vstack(X), y, groups=runs, cv=LeaveOneGroupOut()
            ).mean()
        )

    found = np.mean([accuracy(1.2, seed) for seed in range(30)])
    null = np.mean([accuracy(0.0, seed) for seed in range(100, 130)])
    assert least <= found <= most and 38 <= null <= 62, (found, null)
