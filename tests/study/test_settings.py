from dataclasses import asdict, fields

import pytest

from mvpa_gamp.study.settings import StudySettings, differences, read_settings, settings_text

FULL = StudySettings(
    data_dir='C:\\data "x"\n', bold=("a b.nii", "é.nii"), phantom_shape=(3, 4, 5), lag_trs=2,
    smoothing_fwhm=4.5, high_pass=0.01, confounds=("c.tsv",), detrend=False, pairs=("a:b",), seed=7,
    fold_maps=True,
)  # fmt: skip


@pytest.mark.parametrize("settings", [StudySettings(), FULL])
def test_settings_survive_config_toml(settings, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(settings_text(settings), encoding="utf-8")
    assert StudySettings(**read_settings(path)) == settings


def test_every_setting_has_its_place_in_config_toml(tmp_path):
    path = tmp_path / "config.toml"
    texts = [f.name for f in fields(FULL) if str(f.type) == "str | None"]
    everything = (
        asdict(FULL) | dict.fromkeys(texts, "x") | {"t_r": 2.5, "fdr": 0.1, "phantom": True, "fetch": True}
    )
    path.write_text(settings_text(StudySettings(**everything)), encoding="utf-8")
    assert set(read_settings(path)) == set(asdict(FULL))


def test_pairs_and_methods_may_grow_and_nothing_else_may_change():
    old = asdict(StudySettings(methods=("a",), pairs=("x:y",)))
    assert differences(old, StudySettings(methods=("b", "a"), pairs=("x:y", "x:z"))) == []
    assert differences(old, StudySettings(methods=("b",), pairs=("x:y",))) == [
        "methods was ('a',), now ('b',)"
    ]
    assert differences(old, StudySettings(methods=("a",), pairs=("x:y",), seed=1)) == ["seed was 0, now 1"]


def test_pairs_of_a_bids_study_may_not_grow_because_they_decide_which_events_are_read():
    old = asdict(StudySettings(bids_dir="d", pairs=("x:y",)))
    grown = StudySettings(bids_dir="d", pairs=("x:y", "x:z"))
    assert differences(old, grown) == ["pairs was ('x:y',), now ('x:y', 'x:z')"]
