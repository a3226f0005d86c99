"""Whether participants were processed alike, and what the group's methods text says of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mvpa_gamp.report.group_facts import Group
from mvpa_gamp.report.group_methods import group_methods_text
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.study.group import in_common, mixed

STEPS = {"detrend": True, "standardize": True, "lag_trs": 2, "samples": "tr"}


def person(subject: str, columns: tuple[str, ...] = ("trans_x", "cosine00"), **steps: Any) -> Any:
    """What is read of a participant's results."""
    data = {"space": "MNI", "unit": "volumes"}
    done = {**STEPS, "confounds": list(columns), "confound_columns": list(columns), **steps}
    return SimpleNamespace(subjects=[subject], summary=SimpleNamespace(data=data, processing=done))


def said(people: list[Any]) -> str:
    study = {"subjects": ["01", "02"], "alpha": 0.05, "test": "runs", "maps": [], "version": "1"}
    study |= {"comparisons": {"a": "a vs b"}, "described": [], "cross_validation": "", "compared_with": []}
    return group_methods_text(Group(ResultsFolder(Path()), {**study, **in_common(people)}, [], []))


def test_numbers_of_excluded_volumes_and_of_cosines_are_no_other_processing():
    people = [
        person("01", scrubbed_volumes=3),
        person("02", ("trans_x", "cosine00", "cosine01"), scrubbed_volumes=9, lag_trs=3),
    ]
    assert not mixed(people)
    text = said(people)
    assert "12 volumes with too much motion were excluded" in text
    assert "confound time series (trans_x, cosine00) were regressed out" in text and "shifted" not in text
    assert "labels were shifted by 2 volumes" in said([person("01"), person("02")])


def test_other_steps_and_other_kinds_of_confounds_are():
    for other in (person("02", smoothing_fwhm=4.0), person("02", ("trans_x", "trans_x_power2", "cosine00"))):
        assert "in different ways (sub-01; sub-02)" in mixed([person("01"), other])[0]
        assert "regressed out" not in said([person("01"), other])
