"""Maps of many participants by a table: what is read, left out, scaled, held out and refused."""

import json
import re

import nibabel
import numpy as np
import pytest
from people_maps import AFFINE, SHAPE, make_people, write_table

from mvpa_gamp.__main__ import main as bids_main
from mvpa_gamp.decoding.folds import deal_folds
from mvpa_gamp.decoding.tasks import make_tasks
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.maps import MapsSource, scale
from mvpa_gamp.report.facts import participant_facts
from mvpa_gamp.report.words import words_for
from mvpa_gamp.results.files import read_tsv
from mvpa_gamp.results.reader import read_results
from mvpa_gamp.study.comparisons import exchange_of

PAIR = ("heat:warmth",)


@pytest.fixture(scope="module")
def people():
    return make_people(n=6, effect=1.0)


@pytest.fixture(scope="module")
def table(people, tmp_path_factory):
    return write_table(people, tmp_path_factory.mktemp("maps"))


def load(path, **settings):
    return MapsSource(maps=(str(path),), mask=str(path.parent / "mask.nii.gz"), **settings).load()


def test_lines_in_any_order_give_the_same_maps(people, table, tmp_path):
    first = load(table)
    order = np.random.default_rng(0).permutation(len(people.X))
    again = load(write_table(people, tmp_path, order))
    for name in ("heat", "warmth"):
        mine, theirs = (each.conditions == name for each in (first, again))
        np.testing.assert_array_equal(first.people[mine], again.people[theirs])
        np.testing.assert_allclose(first.X[mine], again.X[theirs], atol=1e-6)
    assert first.kind == "beta" and first.held_out == "participant" and first.subject == "all"
    assert first.description == "24 maps of 6 participants (6 friend, 6 heat, 6 rejection, 6 warmth)."


def test_only_compared_maps_have_a_part_in_the_centre(people, table):
    samples = load(table, pairs=PAIR)
    assert set(samples.conditions) == {"heat", "warmth"} and len(samples.X) == 12
    heat = people.X[(people.conditions == "heat") & (people.participants == 1)]
    warmth = people.X[(people.conditions == "warmth") & (people.participants == 1)]
    mine = (samples.people == 1) & (samples.conditions == "heat")
    np.testing.assert_allclose(samples.X[mine], (heat - warmth) / 2, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(load(table, scaling="none").X[:4], people.X[:4], atol=1e-6)


def test_scaling_uses_no_map_of_another_participant(people):
    X, who = people.X.copy(), people.participants
    before = {how: scale(X, who, how) for how in ("centre", "zscore")}
    X[who == 2] += 7 * np.arange(X.shape[1], dtype=np.float32)
    for how, expected in before.items():
        np.testing.assert_array_equal(scale(X, who, how)[who != 2], expected[who != 2])
    assert np.allclose(before["zscore"][who == 1].std(axis=0, ddof=1), 1, atol=1e-5)


def test_a_4d_file_and_a_table_line_by_line_or_files_by_name(people, table, tmp_path):
    nibabel.save(nibabel.funcs.concat_images(people.images), tmp_path / "all.nii.gz")
    rows = [f"{c}\t{p}" for c, p in zip(people.conditions, people.participants, strict=True)]
    (tmp_path / "labels.tsv").write_text("\n".join(["condition\tsubject", *rows]) + "\n")
    mask, labels = str(table.parent / "mask.nii.gz"), str(tmp_path / "labels.tsv")
    whole = MapsSource(maps=(str(tmp_path / "all.nii.gz"),), labels=labels, mask=mask).load()
    np.testing.assert_allclose(whole.X, load(table).X, atol=1e-6)
    by_name = MapsSource(maps=(str(table.parent / "con_*.nii"),), labels=str(table), mask=mask).load()
    np.testing.assert_array_equal(by_name.X, load(table).X)


def test_missing_cells_are_left_out_and_unknown_columns_named(people, tmp_path):
    ages = ["31"] * 24
    path = write_table(people, tmp_path, age=ages, stimulus=[str(k % 3) for k in range(24)])
    lines = path.read_text().splitlines()
    lines[2] = lines[2].replace("heat\t", "n/a\t")  # the name of the file has it too
    path.write_text("\n".join(lines) + "\n")
    samples = load(path, folds="stimulus", scaling="none")
    assert len(samples.X) == 23 and samples.held_out == "stimulus"
    assert any("1 of 24 maps have no condition or participant" in note for note in samples.notes)
    assert any("not used: age." in note for note in samples.notes)


def test_voxels_without_a_value_in_some_participant(people, tmp_path):
    X = people.X.copy()
    X[3, 5], X[7, 9] = 0, np.nan
    path = write_table(people._replace(X=X), tmp_path)
    dropped, kept = load(path), load(path, zero_voxels="keep")
    assert dropped.X.shape[1] == X.shape[1] - 2 and kept.X.shape[1] == X.shape[1]
    assert any("2 of 168 voxels of the mask are 0 or missing in some map" in note for note in dropped.notes)
    assert np.count_nonzero(dropped.mask_img.dataobj) == X.shape[1] - 2
    without_mask = MapsSource(maps=(str(path),)).load()
    assert without_mask.X.shape == dropped.X.shape


def groups_of_people(n=20):
    """One map each of patients and controls."""
    people = make_people(n, effect=0.0)
    mine = people.conditions == "heat"
    kind = np.where(np.arange(n) % 2, "patient", "control")
    X = people.X[mine] + 0.8 * (kind == "patient")[:, None] * make_people(1, seed=5).X[0]
    return people._replace(X=X.astype(np.float32), conditions=kind, participants=people.participants[mine])


def test_one_map_each_means_stratified_folds_and_whole_participants_exchanged_within_them(tmp_path):
    samples = load(write_table(groups_of_people(), tmp_path))
    assert samples.held_out == "fold" and samples.provenance["map_scaling"] == "none"
    for fold in np.unique(samples.runs):
        assert sorted(samples.conditions[samples.runs == fold]) == ["control", "patient"]
    (task,) = make_tasks(samples.conditions, [("patient", "control")])
    within, blocks = exchange_of(samples, task)
    np.testing.assert_array_equal(within, samples.runs)
    assert len(np.unique(blocks)) == 20


def test_several_maps_are_exchanged_within_participants_whatever_the_folds(table):
    for folds in ("", "3"):
        samples = load(table, folds=folds, pairs=PAIR)
        assert len(np.unique(samples.runs)) == (3 if folds else 6)
        (task,) = make_tasks(samples.conditions, [("heat", "warmth")])
        within, blocks = exchange_of(samples, task)
        np.testing.assert_array_equal(within, samples.people)
        assert len(np.unique(blocks)) == len(blocks)


def test_folds_hold_whole_participants_and_every_kind_in_turn():
    owners = np.repeat(np.arange(12), 2)
    kinds = np.repeat(["a"] * 8 + ["b"] * 4, 2)
    folds = deal_folds(owners, kinds, 4, seed=3)
    assert all(np.ptp(folds[owners == one]) == 0 for one in range(12))
    assert all(sorted(kinds[folds == k]) == ["a"] * 4 + ["b"] * 2 for k in range(1, 5))
    assert (deal_folds(owners, kinds, 4, seed=4) != folds).any()


def test_the_command_decodes_people_and_speaks_of_participants(table, tmp_path, capsys):
    out, mask = tmp_path / "out", str(table.parent / "mask.nii.gz")
    asked = [
        "--maps",
        str(table),
        "--mask",
        mask,
        "--pairs",
        *PAIR,
        "--methods",
        "svm",
        "vamp-bg",
        "--permutations",
        "9",
        "--cross-session",
        "1-3>>4-6",
    ]
    assert main([*asked, "--out", str(out)]) == 0
    said = "".join(capsys.readouterr())
    assert "6 participants: 12 maps x 168 voxels" in said and "haemodynamic" not in said
    results = read_results(out)
    assert results.fold_word == "participant" and results.rows[0]["error_percent"] < 25
    page = (out / "index.html").read_text()
    row = read_tsv(out / "sub-all" / "sub-all_people.tsv")[0]
    assert "participants 1-3 → participants 4-6" in said
    assert float(row["forced_choice_percent"]) > 75 and row["participants"] == "6"
    assert float(row["p_value"]) <= 0.1 and "Between people" in page and "Forced choice" in page
    text = re.sub(r"<(script|style)[\s\S]*?</\1>", "", page)
    assert "held-out participants" in text and "labels were exchanged within participants" in text
    pip = nibabel.load(out / "sub-all/sub-all_contrast-heatMinusWarmth_desc-vampBg_stat-pip_statmap.nii.gz")
    facts = participant_facts(results, "all")["heatMinusWarmth"]
    assert (facts.files.stat == "pip") == (pip.get_fdata().max() >= 0.5)  # a flat map does not lead
    shown = re.sub(r"<[^>]+>", " ", text).split("What is needed to repeat the run")[0]
    for wrong in (
        "haemodynamic",
        "detrended",
        "subject sub-",
        "sum-product",
        r"\bruns\b",
        "every run",
        "volumes",
    ):
        assert not re.search(wrong, shown), wrong
    for file in (out / "sub-all").glob("*.json"):
        told = json.loads(file.read_text())
        told = [told] if "Description" in told else [each for each in told.values() if isinstance(each, dict)]
        for each in told:
            assert not re.search(r"\b([Rr]uns?|[Vv]olumes?)\b", each.get("Description", "")), file.name
    assert "the mean of the participant&#x27;s compared maps was subtracted" in page.replace(
        "&#39;", "&#x27;"
    )
    again = tmp_path / "again"
    config = ["--config", str(out / "config.toml"), "--permutations", "0"]
    assert main([*config, "--out", str(again), "--quiet"]) == 0
    assert (
        read_tsv(again / "summary.tsv")[0]["error_percent"]
        == read_tsv(out / "summary.tsv")[0]["error_percent"]
    )


def test_a_folder_of_bids_maps(people, table, tmp_path):
    for k, image in enumerate(people.images):
        who, what = people.participants[k], people.conditions[k]
        folder = tmp_path / f"sub-{who:02d}"
        folder.mkdir(exist_ok=True)
        for stat in ("effect", "t"):
            nibabel.save(image, folder / f"sub-{who:02d}_task-x_contrast-{what}_stat-{stat}_statmap.nii")
    samples = MapsSource(maps=(str(tmp_path),), mask=str(table.parent / "mask.nii.gz"), pairs=PAIR).load()
    expected = load(table, pairs=PAIR)
    np.testing.assert_array_equal(samples.conditions, expected.conditions)
    np.testing.assert_array_equal(samples.X, expected.X)
    with pytest.raises(DataError, match="expected maps sub-<label>_"):
        MapsSource(maps=(str(table.parent),)).load()


def test_the_third_level_of_the_bids_command_decodes_maps_of_first_level_models(people, tmp_path, capsys):
    for k, image in enumerate(people.images):
        who = f"sub-{people.participants[k]:02d}"
        name = tmp_path / "glm" / who / f"{who}_contrast-{people.conditions[k]}_stat-effect_statmap.nii"
        name.parent.mkdir(parents=True, exist_ok=True)
        nibabel.save(image, name)
    out, told = tmp_path / "out", ["--contrasts", *PAIR, "--methods", "svm", "--quiet"]
    assert bids_main([str(tmp_path / "glm"), str(out), "--level", "between", *told]) == 0
    results = read_results(out)
    assert results.fold_word == "participant" and results.rows[0]["error_percent"] < 25
    capsys.readouterr()
    (tmp_path / "empty").mkdir()
    assert bids_main([str(tmp_path / "empty"), str(tmp_path / "no"), "between", *told]) == 2
    said = capsys.readouterr().err
    assert (
        "expected maps sub-<label>" in said and said.count("error:") == 1 and not (tmp_path / "no").exists()
    )


def test_files_of_one_name_in_folders_of_participants(people, tmp_path):
    lines = ["file\tcondition\tparticipant"]
    for k, image in enumerate(people.images):
        folder = tmp_path / f"s{people.participants[k]}"
        folder.mkdir(exist_ok=True)
        nibabel.save(image, folder / f"{people.conditions[k]}.nii")
        lines.append(f"{folder.name}/{people.conditions[k]}.nii\t{people.conditions[k]}\t{folder.name}")
    (tmp_path / "t.tsv").write_text("\n".join(lines) + "\n")
    source = MapsSource(maps=(str(tmp_path / "*" / "*.nii"),), labels=str(tmp_path / "t.tsv"), scaling="none")
    np.testing.assert_allclose(source.load().X, people.X, atol=1e-6)
    (tmp_path / "t.tsv").write_text("\n".join(line.replace("s1/", "") for line in lines) + "\n")
    with pytest.raises(DataError, match=r"friend.nii fits 6 of the 24 files of --maps"):
        source.load()


def test_covariates_are_columns_of_the_table_whatever_its_order(people, tmp_path):
    ages = [str(20 + k) for k in range(24)]
    samples = load(
        write_table(people, tmp_path, np.arange(24)[::-1], age=ages), covariates=("age",), scaling="none"
    )
    order = [(p, c) for p, c in zip(people.participants, people.conditions, strict=True)]
    rows = [order.index(each) for each in zip(samples.people, samples.conditions, strict=True)]
    np.testing.assert_array_equal(samples.covariates["age"], 20 + np.array(rows))
    for name, said in (("sex", "expected a column of maps.tsv"), ("condition", "expected a number in every")):
        with pytest.raises(DataError, match=said):
            load(tmp_path / "maps.tsv", covariates=(name,))


def test_stimuli_that_repeat_across_folds_are_named(people, tmp_path):
    path = write_table(people, tmp_path, stimulus=[f"pic{k % 3}" for k in range(24)])
    assert any(
        "3 of 3 stimuli (pic0, pic1, pic2) have maps in several folds" in note for note in load(path).notes
    )
    assert not any("stimuli" in note for note in load(path, folds="stimulus").notes)


BAD = {
    "--covariates age": "--covariates age: expected a column of maps.tsv",
    "--fold-confounds c.tsv": "Give columns of the maps' table: --covariates NAME",
    "--folds 1": "--folds: expected 2 or more, got 1",
    "--folds 9": "--folds: expected at most 6, the number of participants, got 9",
    "--folds sex": "--folds sex: expected participant, a number of folds, or a column of maps.tsv",
    "--scaling loud": "--scaling: expected none, centre, zscore, got 'loud'",
    "--scaling zscore --pairs heat:warmth": "expected at least 3 compared maps of every participant, got 2",
    "--scaling centre --folds condition": "which would then contain each other. Give --scaling none",
    "--zero-voxels some": "--zero-voxels: expected drop, keep, got 'some'",
    "--detrend": "--detrend is for time series, and maps are none",
    "--high-pass 0.01": "--high-pass is for time series",
    "--lag-trs 2": "--lag-trs is for time series",
    "--standardize": "maps are scaled by --scaling",
    "--confounds motion.tsv": "--confounds does not apply to maps of participants",
    "--labels other.tsv": "--labels: the table given with --maps has the labels",
    "--bold b.nii --labels l.tsv": "Data come from one source",
}


@pytest.mark.parametrize("options", BAD)
def test_bad_options_are_one_sentence_and_write_nothing(options, table, tmp_path, capsys):
    out = tmp_path / "out"
    files = ["--maps", str(table), "--mask", str(table.parent / "mask.nii.gz"), "--methods", "svm"]
    assert main([*files, *options.split(), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert BAD[options] in said and said.count("error:") == 1 and not out.exists()


def test_options_of_maps_need_maps(tiny, tmp_path, capsys):
    for options in (["--folds", "3"], ["--scaling", "none"], ["--zero-voxels", "keep"]):
        assert main(tiny.options(tmp_path / "out", *options)) == 2
        assert f"{options[0]} does not apply to your own files" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "file\tcondition\na.nii\theat\n",
            "expected a column participant or participant_id or subject, got file",
        ),
        ("condition\tparticipant\nheat\t1\n", "expected a column file or filename or path"),
        (
            "file\tcondition\tparticipant\na.nii\theat\n",
            "expected 3 columns as in its header, got 2 in line 2",
        ),
        ("file\tcondition\tparticipant\na.nii\theat\t1\n", "a.nii in line 2 is not there"),
        ("file\tcondition\tparticipant\n\theat\t1\n", "line 2 names no file"),
        ("file\tcondition\tcondition\n", "expected a header and a line per map"),
        ("file\tfile\tcondition\tparticipant\na\tb\tc\td\n", "expected one column 'file', got several"),
    ],
)
def test_bad_tables_are_one_sentence(text, said, tmp_path):
    (tmp_path / "maps.tsv").write_text(text)
    with pytest.raises(DataError, match=said):
        MapsSource(maps=(str(tmp_path / "maps.tsv"),)).load()


def test_a_participant_without_one_condition_is_named_as_the_reason_for_no_scaling(people, tmp_path):
    path = write_table(people, tmp_path)
    lines = [line for line in path.read_text().splitlines() if "con_02_heat" not in line]
    path.write_text("\n".join(lines) + "\n")
    samples = load(path, pairs=("heat:warmth",))
    assert samples.provenance["map_scaling"] == "none"
    assert any(
        "1 of 6 participants have maps of one compared condition only" in note for note in samples.notes
    )
    asked = load(path, pairs=("heat:warmth",), scaling="none")
    assert not any("only" in note for note in asked.notes)


def test_many_numbers_are_no_conditions(people, tmp_path):
    path = write_table(people, tmp_path)
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    numbered = [lines[0], *([line[0], f"{k / 8}", line[2]] for k, line in enumerate(lines[1:]))]
    path.write_text("\n".join("\t".join(line) for line in numbered) + "\n")
    said = r"got 24 different numbers, from 0 to 2\.875\. To predict a number .* --target"
    with pytest.raises(DataError, match=said):
        load(path)


def test_a_file_in_too_many_lines_or_on_another_grid(people, tmp_path):
    path = write_table(people, tmp_path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[1].replace("friend\t", "heat\t")]) + "\n")
    with pytest.raises(DataError, match=r"con_01_friend.nii has 1 map, but is in 2 lines"):
        load(path)
    path.write_text("\n".join(lines) + "\n")
    nibabel.save(nibabel.Nifti1Image(np.ones((3, 3, 3), np.float32), AFFINE), tmp_path / "con_01_heat.nii")
    with pytest.raises(DataError, match="is on another grid"):
        load(path)
    assert SHAPE != (3, 3, 3)


def test_only_maps_of_people_change_words():
    text = "z-scored within each run; volumes of two runs. Run time, run.log."
    assert words_for(False, "volumes", "session", "session").said(text) == text
    said = words_for(False, "maps", "participant", "participant").said(text)
    assert said == "z-scored within each participant; maps of two participants. Run time, run.log."


def test_images_of_more_than_four_axes_are_refused(tmp_path):
    file, table = tmp_path / "five.nii.gz", tmp_path / "maps.tsv"
    nibabel.save(nibabel.Nifti1Image(np.zeros((4, 4, 4, 2, 2), dtype=np.float32), np.eye(4)), file)
    table.write_text("file\tcondition\tparticipant\n" + "five.nii.gz\ta\t1\nfive.nii.gz\tb\t1\n")
    with pytest.raises(
        DataError, match=r"expected a 3-D image, or a 4-D one of several maps, got shape \(4, 4"
    ):
        MapsSource(maps=(str(table),)).load()
