"""Input that cannot be run: one sentence on stderr, exit code 2, and no results folder."""

import contextlib
import gzip
import json
from pathlib import Path

import nibabel
import numpy as np
import pytest

from mvpa_gamp.haxby import main
from mvpa_gamp.results.files import read_tsv

pytestmark = pytest.mark.whole


def refused(options, capsys, *words, code=2):
    """Run, and check the exit code, the message and that nothing was written."""
    out = Path(options[options.index("--out") + 1])
    existed = out.exists()
    assert main(options) == code
    said = capsys.readouterr()
    message = [line for line in said.err.splitlines() if line.startswith("mvpa_gamp.haxby: error: ")]
    assert len(message) == 1, said.err
    assert "Traceback" not in said.err
    for word in words:
        assert word in message[0]
    assert existed or not out.exists()
    assert not list(out.parent.glob(".writing-*")) if out.parent.is_dir() else True


def with_option(options, name, value):
    changed = list(options)
    changed[changed.index(name) + 1] = str(value)
    return changed


@pytest.fixture
def options(tiny, tmp_path):
    return tiny.options(tmp_path / "out")


def test_fewer_labels_than_volumes(options, tiny, tmp_path, capsys):
    labels = tmp_path / "short.tsv"
    labels.write_text("\n".join(tiny.labels.read_text().splitlines()[:-3]) + "\n")
    refused(with_option(options, "--labels", labels), capsys, "one label per volume", "96", "93")


def test_a_map_in_place_of_a_series(options, tiny, capsys):
    refused(with_option(options, "--bold", tiny.mask), capsys, "expected a 4-D series", "decode --maps")


def test_a_mask_on_another_grid(options, tmp_path, capsys):
    mask = tmp_path / "other.nii.gz"
    nibabel.save(nibabel.Nifti1Image(np.ones((6, 7, 5), dtype=np.uint8), np.eye(4)), mask)
    refused(with_option(options, "--mask", mask), capsys, "another grid", "6 x 7 x 5 voxels", "no voxel left")


def test_an_affine_that_is_singular(options, tiny, tmp_path, capsys):
    for option, path in (("--mask", tiny.mask), ("--bold", tiny.bold)):
        image = nibabel.load(path)
        broken = nibabel.Nifti1Image(np.asarray(image.dataobj), image.affine)
        broken.header["srow_x"] = broken.header["srow_y"]
        broken.header["qform_code"] = 0
        raw = tmp_path / f"singular{option}.nii"
        raw.write_bytes(broken.header.binaryblock + bytes(4) + np.asarray(image.dataobj).tobytes(order="F"))
        refused(with_option(options, option, raw), capsys, "is singular", "Repair the header")


def test_a_usage_error_has_no_traceback_even_with_verbose(options, capsys):
    loud = [option for option in options if option != "--quiet"]
    refused([*loud, "--verbose", "--pairs", "face:zebra"], capsys, "'zebra'")


def test_kernels_of_no_sense(options, capsys):
    for width in ("1e9", "1e7", "1e-300"):
        refused([*options, "--smoothing-fwhm", width], capsys, "expected a width in mm", f"{float(width):g}")
    refused([*options, "--smoothing-fwhm", "900"], capsys, "at most the size of the volume")


def test_an_empty_mask(options, tiny, tmp_path, capsys):
    mask = tmp_path / "empty.nii.gz"
    image = nibabel.load(tiny.mask)
    nibabel.save(nibabel.Nifti1Image(np.zeros(image.shape, dtype=np.uint8), image.affine), mask)
    refused(with_option(options, "--mask", mask), capsys, "is empty")


def test_a_category_that_is_not_there(options, capsys):
    refused([*options, "--pairs", "face:zebra"], capsys, "'zebra'", "'house'")


def test_a_method_that_does_not_exist(options, capsys):
    refused(with_option(options, "--methods", "magic"), capsys, "'magic'", "onebit-cs")


def relabelled(options, tiny, tmp_path, runs):
    """The options with a label file in which the volumes belong to other runs."""
    names = [line.split("\t")[0] for line in tiny.labels.read_text().splitlines()[1:]]
    lines = [f"{name}\t{run}" for name, run in zip(names, runs, strict=True)]
    labels = tmp_path / "labels.tsv"
    labels.write_text("\n".join(["labels\tchunks", *lines]) + "\n")
    return with_option(options, "--labels", labels)


def test_runs_of_very_different_length(options, tiny, tmp_path, capsys):
    def given(*borders):
        return relabelled(options, tiny, tmp_path, np.searchsorted(borders, np.arange(96), side="right"))

    refused(given(1), capsys, "run 0: expected at least 3 volumes, got 1", "Leave the run out")
    short = "run 1: expected at least 10 volumes to detrend or filter it, got 8"
    refused([*given(88), "--high-pass", "0.01"], capsys, short)
    refused([*given(88), "--no-detrend", "--pairs", "face:house"], capsys, "at least two runs")


def test_run_numbers_beyond_64_bits_are_names(options, tiny, tmp_path):
    runs = 2**70 + np.repeat(np.arange(4), 24).astype(object)
    given = relabelled(options, tiny, tmp_path, runs)
    assert main([*given, "--pairs", "face:house", "--quiet"]) == 0
    told = json.loads((tmp_path / "out" / "summary.json").read_text())["data"]["provenance"]["runs"]
    assert told == ", ".join(f"{k + 1} = {2**70 + k}" for k in range(4))


def test_a_label_of_the_participant_that_no_file_name_holds(options, capsys):
    given = with_option(options, "--participant-label", "x" * 300)
    refused(given, capsys, "at most 60 characters", "got 300", "Shorten it")


def test_values_that_no_fit_can_hold_are_told_before_the_first_fit(options, tiny, tmp_path, capsys):
    image = nibabel.load(tiny.bold)
    bold = tmp_path / "tiny-values.nii.gz"
    nibabel.save(nibabel.Nifti1Image(np.asarray(image.dataobj) * np.float32(1e-30), image.affine), bold)
    refused(with_option(options, "--bold", bold), capsys, "volumes: their values", "between 1e-15 and 1e+15")


def test_a_pair_with_one_run(make_tiny, tmp_path, capsys):
    data = make_tiny(tmp_path / "one", n_runs=1)
    refused(data.options(tmp_path / "out"), capsys, "at least two runs")


def test_a_category_in_one_run_only(tiny, options, tmp_path, capsys):
    lines = [
        line.replace("house", "rest") if not line.endswith("\t0") else line
        for line in tiny.labels.read_text().splitlines()
    ]
    labels = tmp_path / "labels.tsv"
    labels.write_text("\n".join(lines) + "\n")
    given = [*with_option(options, "--labels", labels), "--pairs", "face:house"]
    refused(given, capsys, "without run 0", "only one of the two categories")


@pytest.mark.parametrize("damage", ["cut", "flipped", "text"])
def test_damaged_volumes(damage, options, tiny, tmp_path, capsys):
    content = bytearray(tiny.bold.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[len(content) // 2] ^= 0xFF
    else:
        content = bytearray(b"this is no image")
    bold = tmp_path / "damaged.nii.gz"
    bold.write_bytes(bytes(content))
    refused(with_option(options, "--bold", bold), capsys, "damaged.nii.gz")


def test_a_header_that_claims_absurd_dimensions(options, tiny, tmp_path, capsys):
    raw = bytearray(gzip.decompress(tiny.bold.read_bytes()))
    raw[42:50] = np.array([30000, 30000, 30000, 30000], dtype="<i2").tobytes()
    bold = tmp_path / "absurd.nii.gz"
    bold.write_bytes(gzip.compress(bytes(raw)))
    refused(with_option(options, "--bold", bold), capsys, "30000")


def test_nan_and_constant_voxels_are_dropped_and_counted(options, tiny, tmp_path, capsys):
    image = nibabel.load(tiny.bold)
    volumes = np.asarray(image.dataobj).copy()
    volumes[1, 1, 0, 5] = np.nan
    volumes[1, 2, 0, :] = 7.0
    bold = tmp_path / "holes.nii.gz"
    nibabel.save(nibabel.Nifti1Image(volumes, image.affine, image.header), bold)
    assert main([*with_option(options, "--bold", bold), "--pairs", "face:house"]) == 0
    said = capsys.readouterr().err
    assert "1 of 60 voxels of the mask have NaN" in said
    assert "1 of 60 voxels of the mask are constant" in said
    page = (Path(options[options.index("--out") + 1]) / "index.html").read_text()
    assert "1 of 60 voxels of the mask are constant" in page


def test_output_below_a_file(tiny, tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    refused(tiny.options(tmp_path / "file" / "out"), capsys, "cannot be written")
    refused(tiny.options(tmp_path / "file"), capsys, "is a file")


def test_results_are_not_overwritten_unasked_nor_foreign_files_ever(tiny, tmp_path, capsys):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("precious")
    for more in ([], ["--resume"], ["--overwrite"]):
        refused([*tiny.options(out), *more], capsys, "Give another folder" if more else "not empty")
    assert (out / "thesis.txt").read_text() == "precious"


def test_overwrite_replaces_results_and_keeps_other_files(tiny, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(tiny.options(out, "--pairs", "face:house", "--quiet")) == 0
    (out / "notes.txt").write_text("mine")
    refused(tiny.options(out), capsys, "--resume", "--overwrite")
    assert main(tiny.options(out, "--pairs", "face:cat", "--quiet", "--overwrite")) == 0
    assert (out / "notes.txt").read_text() == "mine"
    assert not list(out.rglob("*faceMinusHouse*"))
    assert list(out.rglob("*faceMinusCat*"))


def test_stored_fits_of_other_data_are_refused(tiny, make_tiny, tmp_path, capsys):
    data = make_tiny(tmp_path / "data")
    given = data.options(tmp_path / "out", "--pairs", "face:house", "--quiet")
    assert main(given) == 0
    image = nibabel.load(data.bold)
    changed = np.asarray(image.dataobj) + np.random.default_rng(0).normal(size=image.shape)
    nibabel.save(nibabel.Nifti1Image(changed.astype(np.float32), image.affine, image.header), data.bold)
    refused([*given, "--resume"], capsys, "other data")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--phantom"], ["one source"]),
        (["--n-jobs", "0"], ["--n-jobs: expected 1 or more"]),
        (["--dask", "here"], ["--dask", "local:N", "'here'"]),
        (["--dask", "local:2", "--n-jobs", "2"], ["--n-jobs and --dask"]),
        (["--resume", "--overwrite"], ["one of the two"]),
        (["--high-pass", "9"], ["high_pass"]),
        (["--confounds", "nowhere.tsv"], ["nowhere.tsv"]),
        (["--confounds", "/dev/zero"], ["found no file there"]),
        (["--config", "nowhere.toml"], ["nowhere.toml"]),
        (["--participant-label", "phantom"], ["phantom"]),
        (["--phantom-shape", "9", "9", "9"], ["--phantom-shape"]),
        (["--seed", "-1"], ["--seed", "-1"]),
        (["--lag-trs", "500"], ["a lag of 500", "24 volumes"]),
        (["--pairs", "face:rest"], ["'rest'", "left out as rest"]),
    ],
)
def test_options_that_contradict_or_miss_something(more, words, options, capsys):
    refused([*options, *more], capsys, *words)


def test_a_config_file_with_a_mistake(options, tmp_path, capsys):
    config = tmp_path / "config.toml"
    for text, word in (
        ("[study]\nsede = 1\n", "'sede'"),
        ('[study]\nseed = "one"\n', "seed should be a int"),
        ("[study\n", "not valid TOML"),
        ("[other]\n", "'other'"),
    ):
        config.write_text(text)
        refused([*options, "--config", str(config)], capsys, word)


def test_missing_haxby_data_are_named(tmp_path, capsys):
    given = ["--data-dir", str(tmp_path), "--out", str(tmp_path / "out")]
    refused(given, capsys, "haxby2001", "--fetch")
    refused([*given, "--participant-label", "7"], capsys, "1 to 6")


def test_own_data_need_all_three_files(tiny, tmp_path, capsys):
    refused(["--bold", str(tiny.bold), "--out", str(tmp_path / "out")], capsys, "--labels", "--mask")


def test_a_folder_without_results_has_no_report(tmp_path, capsys):
    refused(["--reports-only", "--out", str(tmp_path)], capsys, "summary.json is missing")


def test_labels_that_are_paths_or_markup_are_only_names(make_tiny, tmp_path):
    data = make_tiny(tmp_path / "data", categories=("../x", "<script>alert(1)</script>", "$\\alpha$"))
    out = tmp_path / "out"
    assert main(data.options(out, "--pairs", "all", "--quiet")) == 0
    assert {p.name for p in tmp_path.iterdir()} == {"data", "out"}
    assert all(".." not in p.name and "<" not in p.name for p in out.rglob("*"))
    page = (out / "index.html").read_text()
    assert page.count("<script>") == 1 and "<script>alert" not in page  # the page's own is the only one
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert any("<script>" in row["comparison"] for row in read_tsv(out / "summary.tsv"))


def test_names_that_collide_are_refused(make_tiny, tmp_path, capsys):
    data = make_tiny(tmp_path / "data", categories=("a-b", "ab", "c"))
    refused(data.options(tmp_path / "out", "--pairs", "all"), capsys, "share the file name")


def test_a_method_that_fails_is_named_and_the_others_go_on(tiny, tmp_path, capsys, monkeypatch):
    from mvpa_gamp.methods.onebit_cs import OneBitCS

    def broken(self, X, y, train, runs):
        raise RuntimeError("the disk <b>melted</b>")

    monkeypatch.setattr(OneBitCS, "fit_folds", broken)
    out = tmp_path / "out"
    given = tiny.options(out, "--methods", "onebit-cs", "cdn", "--pairs", "face:house", "face:cat")
    assert main(given) == 1
    assert "the disk <b>melted</b>" in capsys.readouterr().err
    rows = {(row["contrast"], row["method"]): row for row in read_tsv(out / "summary.tsv")}
    assert rows["faceMinusHouse", "onebit-cs"]["error_percent"] == "n/a"
    assert "melted" in rows["faceMinusHouse", "onebit-cs"]["status"]
    assert rows["faceMinusHouse", "cdn"]["status"] == "ok"
    assert "&lt;b&gt;melted" in (out / "index.html").read_text()
    monkeypatch.undo()
    assert main([*given, "--resume", "--quiet"]) == 0  # and a resume makes up for it


def test_nothing_is_promised_that_is_not_there(finished, tmp_path, capsys):
    import shutil

    copy = shutil.copytree(finished, tmp_path / "copy")
    next((copy / "sub-tiny").glob("*FoldMean*pattern*.nii.gz")).unlink()
    assert main(["--reports-only", "--out", str(copy)]) == 1
    assert "missing: " in capsys.readouterr().err


def test_a_link_to_nowhere_is_no_folder(tiny, tmp_path, capsys):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    refused(tiny.options(tmp_path / "link"), capsys, "is a link to")


@pytest.mark.parametrize("name", ["logs/environment.json", "timings.tsv"])
def test_files_without_a_digest_are_read_before_anything_is_drawn(finished, tmp_path, capsys, name):
    import shutil

    copy = shutil.copytree(finished, tmp_path / "copy")
    (copy / name).write_bytes(b"{\xff")
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    refused(["--reports-only", "--out", str(copy)], capsys, "damaged", "--resume")
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_a_folder_in_place_of_the_manifest(finished, tiny, tmp_path, capsys):
    import shutil

    copy = shutil.copytree(finished, tmp_path / "copy")
    manifest = copy / "logs" / "manifest.tsv"
    manifest.unlink()
    manifest.mkdir()
    (manifest / "mine.txt").write_text("kept")
    words = ("manifest.tsv cannot be written: a folder with files is in its place", "--resume")
    refused(["--config", str(copy / "config.toml"), "--out", str(copy), "--resume"], capsys, *words, code=1)
    assert (manifest / "mine.txt").read_text() == "kept"


@pytest.mark.figures
def test_a_damaged_folder_has_no_report_but_a_way_out(finished, tmp_path, capsys):
    import shutil

    copy = shutil.copytree(finished, tmp_path / "copy")
    next((copy / "sub-tiny").glob("*cdn_stat-weight*.nii.gz")).unlink()
    refused(["--reports-only", "--out", str(copy)], capsys, "missing or damaged", "--resume")
    (copy / "summary.json").write_text("{")
    refused(["--reports-only", "--out", str(copy)], capsys, "summary.json is damaged", "--resume")


def test_a_mistyped_folder_is_not_resumed_as_a_new_study(tmp_path, capsys):
    refused(["--out", str(tmp_path / "resluts"), "--resume"], capsys, "does not exist", "Check the name")
    assert not (tmp_path / "resluts").exists()


def test_too_few_runs_for_nested_tuning_are_told_before_the_first_fit(make_tiny, tmp_path, capsys):
    data = make_tiny(tmp_path / "two", n_runs=2)
    given = data.options(tmp_path / "out", "--methods", "gamp-bg-lr", "l1-lr-cv", "--pairs", "face:house")
    words = (
        "face vs house, --methods l1-lr-cv: Tuning by nested",
        "at least two training runs",
        "three runs",
    )
    refused(given, capsys, *words)
    assert main(data.options(tmp_path / "out", "--methods", "lda", "--pairs", "face:house", "--quiet")) == 0


def test_too_few_training_runs_of_a_cross_are_told_before_the_first_fit(options, capsys):
    more = ["--pairs", "face:house", "--cross-session", "0>>1-3"]
    refused([*options, *more], capsys, "--methods onebit-cs: Tuning by nested", "at least two training runs")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--multi-class"], "unrecognized arguments: --multi-class. Did you mean --multiclass?"),
        (["--permutatoins=5"], "Did you mean --permutations?"),
        (["--methods", "gamp_sbg_lr"], "got 'gamp_sbg_lr'. Did you mean gamp-sbg-lr?"),
        (["--methods", "zzz"], "got 'zzz'. Correct the names."),
    ],
)
def test_a_mistyped_option_or_method_gets_an_offer(given, words, capsys, tmp_path):
    with contextlib.suppress(SystemExit):
        assert main(["--phantom", "--out", str(tmp_path / "out"), *given]) == 2
    assert words in capsys.readouterr().err and not (tmp_path / "out").exists()
