import pytest

from mvpa_gamp.imaging.bids.betas import BetasSource
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.maps import MapsSource
from mvpa_gamp.imaging.phantom.source import PhantomSource
from mvpa_gamp.imaging.source import HaxbySource, OwnFiles
from mvpa_gamp.study.settings import SECTIONS, StudySettings, differences, read_settings, settings_text

CLEANING = {"smoothing_fwhm": 4.5, "high_pass": 0.01, "t_r": 2.5, "detrend": False, "standardize": False}
FULL = (
    HaxbySource(data_dir='C:\\data "x"\n', participant_label="3", fetch=True, mask="vt", **CLEANING),
    OwnFiles(bold=("a b.nii", "é.nii"), labels="l", mask="m", confounds=("c.tsv",), lag_trs=2, **CLEANING),
    MapsSource(
        maps=("m",), mask="n", folds="8", scaling="none", zero_voxels="keep", covariates=("age",), seed=7,
        pairs=("a:b",),
    ),
    PhantomSource(phantom_shape=(3, 4, 5), seed=7, mask="vt", lag_trs=2, **CLEANING),
    BidsSource(
        bids_dir="d", derivatives="none", participant_label="1", task="t", space="s", samples="block",
        pairs=("a:b",), confounds=("motion6",), mask="m", lag_trs=2, **CLEANING,
    ),
    BidsSource(
        bids_dir="d", participant_label="1", task=("t", "u"), session_label=("1",), run_label=("2", "3"),
        bids_filter_file="f.json", samples="trial", trial_model="lsa", hrf_model="spm", drift_model="none",
        surface_mesh=("l.gii", "r.gii"), cv="session", confounds_strategy="simple", pairs=("a:b",),
    ),
    BetasSource(bids_dir="d", participant_label="1", betas="b", betas_glob="*", pairs=("a:b",), lag_trs=0),
)  # fmt: skip
STUDY = {"seed": 7, "fold_maps": True, "pairs": ("a:b",), "permutations": 3, "fdr": 0.1}

# What the package wrote before sources had classes of their own.
OLD_OWN = """
[data]
fetch = false
participant_label = "tiny"
mask = "/data/mask.nii.gz"
bold = ["/data/bold.nii.gz"]
labels = "/data/labels.tsv"
phantom = false

[processing]
lag_trs = 0
detrend = true
standardize = true

[study]
methods = ["onebit-cs"]
seed = 0
fold_maps = false

[inference]
permutations = 0
max_inclusion = false
learning_curve = false
"""
OLD_HAXBY = OLD_OWN.replace('bold = ["/data/bold.nii.gz"]\nlabels = "/data/labels.tsv"\n', "").replace(
    'mask = "/data/mask.nii.gz"', 'data_dir = "/data"'
).replace("tiny", "1")  # fmt: skip
OLD_PHANTOM = OLD_HAXBY.replace('data_dir = "/data"\n', "").replace('participant_label = "1"\n', "").replace(
    "phantom = false", "phantom = true"
)  # fmt: skip
OLD_BIDS = """
[bids]
bids_dir = "/ds"
derivatives = "/ds/derivatives/fmriprep"
samples = "tr"
""" + OLD_HAXBY.replace('data_dir = "/data"\n', "").replace(
    "lag_trs = 0", 'lag_trs = 2\nconfounds = ["motion6"]'
).replace("[study]", '[study]\npairs = ["all"]')
OLD_BETAS = (
    OLD_BIDS.replace('samples = "tr"', 'samples = "betas"\nbetas = "/maps"\nbetas_glob = "*"')
    .replace('lag_trs = 2\nconfounds = ["motion6"]', 'lag_trs = 0\nconfounds = ["none"]')
    .replace("detrend = true", "detrend = false")
)
OLD = {
    OLD_OWN: OwnFiles(
        bold=("/data/bold.nii.gz",), labels="/data/labels.tsv", mask="/data/mask.nii.gz",
        participant_label="tiny",
    ),
    OLD_HAXBY: HaxbySource(data_dir="/data", participant_label="1"),
    OLD_PHANTOM: PhantomSource(),
    OLD_BIDS: BidsSource(
        bids_dir="/ds", derivatives="/ds/derivatives/fmriprep", participant_label="1", lag_trs=2,
        confounds=("motion6",),
    ),
    OLD_BETAS: BetasSource(
        bids_dir="/ds", derivatives="/ds/derivatives/fmriprep", participant_label="1", lag_trs=0,
        confounds=("none",), detrend=False, betas="/maps", betas_glob="*",
    ),
}  # fmt: skip


def written(settings, path):
    path.write_text(settings_text(settings), encoding="utf-8")
    return read_settings(path)


@pytest.mark.parametrize(
    "source", [HaxbySource(), PhantomSource(seed=7), *FULL], ids=lambda source: source.name
)
def test_settings_survive_config_toml(source, tmp_path):
    settings = StudySettings(source, **STUDY)
    assert StudySettings.of(written(settings, tmp_path / "config.toml")) == settings


def test_every_setting_has_its_place_in_config_toml(tmp_path):
    regions = {"atlas": "a", "atlas_labels": "b", "by_region": True}
    more = {**STUDY, "max_inclusion": True, "learning_curve": True, "methods": ("x",), **regions}
    more |= {"classes": ("all",), "cross": ("a:b>c:d",), "cross_session": ("1>2",)}
    more |= {"class_weight": "balanced", "fold_confounds": "c.tsv"}
    found = [written(StudySettings(source, **more), tmp_path / "config.toml") for source in FULL]
    assert {name for values in found for name in values} == {n for names in SECTIONS.values() for n in names}


@pytest.mark.parametrize(("text", "source"), OLD.items(), ids=lambda part: getattr(part, "name", ""))
def test_a_config_of_before_is_the_same_study(text, source, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(text)
    settings = StudySettings(source, methods=("onebit-cs",), pairs=getattr(source, "pairs", None))
    assert StudySettings.of(read_settings(path)) == settings
    assert differences(read_settings(path), settings) == []


def test_pairs_and_methods_may_grow_and_nothing_else_may_change():
    old = StudySettings(methods=("a",), pairs=("x:y",)).values()
    assert differences(old, StudySettings(methods=("b", "a"), pairs=("x:y", "x:z"))) == []
    assert differences(old, StudySettings(methods=("b",), pairs=("x:y",))) == ["methods was a, now b"]
    assert differences(old, StudySettings(methods=("a",), pairs=("x:y",), seed=1)) == ["seed was 0, now 1"]


def test_pairs_of_a_bids_study_may_not_grow_because_they_decide_which_events_are_read():
    old = StudySettings(BidsSource(bids_dir="/d", pairs=("x:y",))).values()
    grown = StudySettings(BidsSource(bids_dir="/d", pairs=("x:y", "x:z")))
    assert differences(old, grown) == ["pairs was x:y, now x:y x:z"]


def test_seed_and_pairs_of_the_study_reach_the_source(bids_tree):
    phantom = StudySettings(PhantomSource(), seed=5).resolve(print)
    assert (phantom.source.seed, phantom.seed, phantom.pairs) == (5, 5, None)
    source = BidsSource(bids_dir=str(bids_tree.root), participant_label="01")
    for pairs, expected in ((None, ("all",)), (("face:cat",), ("face:cat",))):
        settings = StudySettings(source, pairs=pairs).resolve(print)
        assert settings.pairs == settings.source.pairs == expected


def test_a_relative_path_of_before_is_the_absolute_one_of_now(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old = {"data_dir": "data", "participant_label": "1", "mask": "m.nii", "lag_trs": 0}
    now = HaxbySource(data_dir=str(tmp_path / "data"), participant_label="1", mask=str(tmp_path / "m.nii"))
    assert differences(old, StudySettings(now)) == []


def test_another_source_is_another_study():
    changed = differences(StudySettings(PhantomSource()).values(), StudySettings(HaxbySource(data_dir="/d")))
    assert "data_dir was not given, now /d" in changed and "phantom was on, now not given" in changed
