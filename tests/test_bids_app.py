"""The BIDS App: participants, then the group; resumed after a kill; and who cannot be analysed."""

import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nibabel
import numpy as np
import pytest

from mvpa_gamp.__main__ import build_parser, main, study_settings
from mvpa_gamp.decoding.permutation import places, share_as_good
from mvpa_gamp.report.group_page import build_group_page
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.reader import read_results
from mvpa_gamp.study import group_maps, participants
from mvpa_gamp.study.participants import _Told

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parents[1]
SPACE = "MNI152NLin2009cAsym"
QUICK = ("--methods", "onebit-cs", "--contrasts", "face:house", "--quiet")

SHARED = f"task-objectviewing_space-{SPACE}_"  # what all names of the small dataset carry

# BIDS's order of entities in what the command writes.
WRITTEN = re.compile(
    r"(?:sub-[0-9A-Za-z]+_)?(?:ses-[0-9A-Za-z]+_)?(?:task-[0-9A-Za-z]+_)?(?:space-[0-9A-Za-z]+_)?"
    r"(?:res-[0-9A-Za-z]+_)?(?:contrast-[0-9A-Za-z]+_)?(?:desc-[0-9A-Za-z]+_)?(?:stat-[0-9A-Za-z]+_)?"
    r"(?:statmap|mask|boldref|folds|predictions|jaccard|consistency|confusion|clusters|inference|permutations|information|voxels)\.(?:nii\.gz|json|tsv)"
)

# Ends the process with SIGKILL in the moment the fourth unit would be stored: in the second participant.
KILLED = """
import os, signal, sys
from mvpa_gamp.study import jobs
save, count = jobs.save_fits, []
def save_or_die(path, fits, fingerprint):
    count.append(path)
    if len(count) == 4:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)  # all is written but the name
    save(path, fits, fingerprint)
jobs.save_fits = save_or_die
from mvpa_gamp.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def participant(tree, out, *more):
    return [str(tree.root), str(out), "participant", *more]


def group(tree, out, *more):
    return [str(tree.root), str(out), "group", "--quiet", *more]


def tables(out: Path) -> dict[str, bytes]:
    """Tables, maps and figures of participants and group, without run times and what shows them."""
    left_out = {"timings.tsv", "index.html"}
    files = [p for p in out.rglob("*") if p.is_file() and p.name not in left_out]
    files = [p for p in files if not {"logs", "work"} & set(p.relative_to(out).parts)]
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in files}


@pytest.fixture(scope="module")
def options():
    """A method with a posterior and one without."""
    return ("--methods", "gamp-bg-lr", "onebit-cs", "--contrasts", "face:house", "--quiet")


@pytest.fixture(scope="module")
def done(bids_tree, options, tmp_path_factory):
    """Three participants and their group."""
    out = tmp_path_factory.mktemp("app") / "out"
    assert main(participant(bids_tree, out, *options)) == 0
    assert main(group(bids_tree, out)) == 0
    return out


@pytest.fixture
def copy(bids_tree, tmp_path):
    """A dataset to be spoilt."""
    return type(bids_tree)(shutil.copytree(bids_tree.root, tmp_path / "ds"), bids_tree.phantoms)


# --- what is written


def test_every_participant_has_the_files_of_the_haxby_command(done):
    for label in ("01", "02", "03"):
        folder = done / f"sub-{label}"
        names = {path.name for path in folder.iterdir()}
        assert {"index.html", "summary.tsv", "summary.json", "timings.tsv", "config.toml", "figures"} <= names
        for path in folder.glob("sub-*"):
            assert WRITTEN.fullmatch(path.name), path.name
        for stat in ("weight", "weightsd", "pip", "selfreq", "pattern"):
            assert (
                folder
                / f"sub-{label}_{SHARED}contrast-faceMinusHouse_desc-gampBgLr_stat-{stat}_statmap.nii.gz"
            ).is_file()
        assert {row["subject"] for row in read_tsv(folder / "summary.tsv")} == {label}
        study = json.loads((folder / "summary.json").read_text())
        assert study["processing"]["lag_trs"] == 2
        assert study["processing"]["confounds"][0] == "trans_x"
        assert f"sub-{label}" in (folder / "index.html").read_text()
    about = json.loads((done / "dataset_description.json").read_text())
    assert about["DatasetType"] == "derivative"


def test_the_group_table_is_the_mean_of_the_participants(done):
    each = read_tsv(done / "group_accuracy.tsv")
    assert len(each) == 3 * 2
    for row in each:
        own = next(
            r
            for r in read_tsv(done / f"sub-{row['subject']}" / "summary.tsv")
            if (r["contrast"], r["method"]) == (row["contrast"], row["method"])
        )
        assert number(row["accuracy_percent"]) == pytest.approx(100 - number(own["error_percent"]), abs=1e-3)
        assert number(row["p_value"]) >= 0.055  # six held-out runs that share their training runs
    for row in read_tsv(done / "group_summary.tsv"):
        mine = [
            number(r["accuracy_percent"])
            for r in each
            if (r["contrast"], r["method"]) == (row["contrast"], row["method"])
        ]
        assert number(row["accuracy_percent"]) == pytest.approx(np.mean(mine), abs=1e-3)
        assert number(row["accuracy_se_percent"]) == pytest.approx(np.std(mine, ddof=1) / 3**0.5, abs=1e-3)
        assert row["participants"] == "3" and row["tested"] == "0"  # six runs cannot reach 0.05
        assert row["prevalence"] == row["minimum_bound"] == "n/a"  # and there are no permutations
        assert number(row["signflip_p_value"]) >= number(row["signflip_smallest_p"]) == 0.125
        assert row["signflip_p_holm"] == row["signflip_p_value"] and row["comparisons_tested"] == "1"
        low, high = (number(row[f"balanced_{end}_percent"]) for end in ("low", "high"))
        assert low <= number(row["balanced_percent"]) <= high
    (row,) = read_tsv(done / "group_differences.tsv")
    assert (row["between"], row["within"], row["participants"]) == ("methods", "faceMinusHouse", "3")
    own = {r["method"]: [] for r in each}
    for r in each:
        own[r["method"]].append(number(r["accuracy_percent"]))
    means = np.mean(own[row["first"]]) - np.mean(own[row["second"]])
    assert number(row["difference_percent"]) == pytest.approx(means, abs=1e-3)


def test_mean_maps_are_means_at_the_common_voxels(done):
    inside = np.logical_and.reduce(
        [np.asarray(nibabel.load(p).dataobj) > 0 for p in done.glob("sub-*/*desc-analysed_mask.nii.gz")]
    )
    assert (
        np.asarray(nibabel.load(done / "group" / f"{SHARED}desc-common_mask.nii.gz").dataobj) > 0
    ).sum() == inside.sum()
    name = SHARED + "contrast-faceMinusHouse_desc-gampBgLr{}_stat-{}_statmap.nii.gz"
    for stat in ("pip", "pattern"):
        maps = [
            np.asarray(nibabel.load(p).dataobj)[inside]
            for p in done.glob(f"sub-*/sub-*_{name.format('', stat)}")
        ]
        if stat == "pattern":
            maps = [values / np.sqrt(np.mean(values.astype(float) ** 2)) for values in maps]
        mean = np.asarray(nibabel.load(done / "group" / name.format("Mean", stat)).dataobj)
        np.testing.assert_allclose(mean[inside], np.mean(maps, axis=0), rtol=1e-5, atol=1e-7)
        assert len(maps) == 3 and not mean[~inside].any()
    assert all(WRITTEN.fullmatch(path.name) for path in (done / "group").iterdir())
    assert not list((done / "group").glob("*onebitCs*stat-pip*"))


@pytest.mark.figures
def test_maps_of_the_group_share_and_family_wise_test(done, bids_tree, tmp_path, monkeypatch):
    """Three participants reach 0.25 at best: a level of 0.3 has a map, 0.05 a sentence."""
    monkeypatch.setattr(group_maps, "_FAMILY_WISE", 0.8)
    page = html.unescape((done / "index.html").read_text())
    assert "no family-wise map: flipping the signs of 3 participants' maps" in page
    assert not list((done / "group").glob("*SignFlip*"))
    out = shutil.copytree(done, tmp_path / "out")
    assert main(group(bids_tree, out, "--alpha", "0.3")) == 0
    inside = np.asarray(nibabel.load(out / "group" / f"{SHARED}desc-common_mask.nii.gz").dataobj) > 0
    name = SHARED + "contrast-faceMinusHouse_desc-gampBgLr{}_stat-{}_statmap.nii.gz"

    def read(desc, stat, where="group"):
        return np.asarray(nibabel.load(out / where / name.format(desc, stat)).dataobj)[inside]

    def each(stat):
        return np.stack(
            [
                np.asarray(nibabel.load(p).dataobj)[inside]
                for p in sorted(out.glob(f"sub-*/sub-*_{name.format('', stat)}"))
            ]
        )

    np.testing.assert_allclose(read("Share", "selfreq"), (each("pip") > 0.5).mean(axis=0), atol=1e-6)
    patterns = each("pattern").astype(float)
    patterns /= np.sqrt((patterns**2).mean(axis=1, keepdims=True))
    t = patterns.mean(axis=0) / (patterns.std(axis=0, ddof=1) / 3**0.5)
    np.testing.assert_allclose(read("SignFlip", "t"), t, rtol=1e-3)
    p = 10 ** -read("SignFlip", "logpfwe").astype(float)
    np.testing.assert_array_equal(read("SignFlipFwe", "t"), np.where(p < 0.8, read("SignFlip", "t"), 0))
    assert 0 < np.count_nonzero(read("SignFlipFwe", "t")) < p.size
    assert set(np.round(p, 4)) <= {0.25, 0.5, 0.75, 1.0}
    about = json.loads(
        (out / "group" / name.format("SignFlip", "logpfwe").replace(".nii.gz", ".json")).read_text()
    )
    assert (
        about["SignPatterns"] == 4
        and about["SmallestPValue"] == 0.25
        and "not corrected over" in about["Description"]
    )
    assert "Nichols & Holmes" in html.unescape((out / "index.html").read_text())
    said = answered(out)
    least = f"smallest family-wise p: {p.min():.2g}; the mean pattern is largest at"
    assert f"Where no voxel at p ≤ 0.05 {least}" in said
    mean = patterns.mean(axis=0)
    assert f"signal higher for {'face' if mean[np.abs(mean).argmax()] > 0 else 'house'}" in said
    assert f"Which file has the map {name.format('Mean', 'pip')}" in said
    assert "shown where p ≤ 0.05" not in (out / "index.html").read_text()
    before = (out / "figures" / "group_contrast-faceMinusHouse_maps.png").read_bytes()
    path = out / "group" / name.format("SignFlip", "logpfwe")
    image = nibabel.load(path)
    every = np.arange(np.prod(image.shape)).reshape(image.shape)
    passed = np.where(every % 7 == 0, 2.0, 0.1) * inside_of(out)
    nibabel.Nifti1Image(passed.astype(np.float32), image.affine).to_filename(path)
    build_group_page(out)
    said = answered(out)
    assert f"Which file has the map {name.format('SignFlipFwe', 't')}" in said
    assert f"{np.count_nonzero(passed == 2.0)} voxels with p ≤ 0.05" in said
    assert "shown where p ≤ 0.05 (1.3)" in (out / "index.html").read_text()
    assert (out / "figures" / "group_contrast-faceMinusHouse_maps.png").read_bytes() != before


def inside_of(out):
    return np.asarray(nibabel.load(out / "group" / f"{SHARED}desc-common_mask.nii.gz").dataobj) > 0


def answered(out):
    """The text of the first box of a group's page."""
    page = (out / "index.html").read_text()
    box = page[page.index('<dl class="answer">') : page.index("</dl>", page.index('<dl class="answer">'))]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", box)).split())


def test_the_group_page_is_one_file_and_says_what_was_assumed(done):
    page = (done / "index.html").read_text()
    for words in (
        "sign test over runs",
        "Methods text",
        "Ince et al.",
        "lower bound",
        'href="sub-02/index.html"',
        "face vs house",
    ):
        assert words in page
    assert "http-equiv" in page and page.count("<script") == 1
    assert page.count("<img") == 1 + 2  # accuracies; mean maps and glass brain of the comparison
    linked = [link for link in re.findall(r'href="([^"#]+)"', page) if not link.startswith("data:")]
    assert linked and all((done / link).is_file() for link in linked)


def test_the_group_page_answers_where_how_stable_and_in_which_file(done):
    """The same box as on the page of a participant, with numbers of the group's tables and maps."""
    page = (done / "index.html").read_text()
    box = page[page.index('<dl class="answer">') : page.index("</dl>", page.index('<dl class="answer">'))]
    said = answered(done)
    for words in ("How accurate", "How sure", "How common", "How stable", "Where", "Which file has the map"):
        assert words in said, words
    (row,) = [row for row in read_tsv(done / "group_summary.tsv") if row["method"] == "gamp-bg-lr"]
    assert f"{number(row['accuracy_percent']):.1f} % correct chance 50 %; mean over 3 participants" in said
    rows = [r for k in (1, 2, 3) for r in read_tsv(done / f"sub-0{k}" / "summary.tsv")]
    shared = [number(r["consistency_percent"]) for r in rows
              if (r["contrast"], r["method"]) == ("faceMinusHouse", "gamp-bg-lr")]  # fmt: skip
    assert f"{np.mean(shared):.0f} % consistency" in said
    pattern = nibabel.load(
        next((done / "group").glob("*contrast-faceMinusHouse_desc-gampBgLrMean_stat-pattern_statmap.nii.gz"))
    )
    peak = np.unravel_index(np.abs(pattern.get_fdata()).argmax(), pattern.shape)
    place = nibabel.affines.apply_affine(pattern.affine, peak)
    x = str(int(np.floor(place[0] + 0.5))).replace("-", "−")
    assert f"Where not tested the mean pattern is largest at {x} " in said  # three are too few
    assert "a description; space: MNI152NLin2009cAsym" in said
    assert box.index("mean inclusion") < box.index("mean pattern over") < box.index("share of participants")
    assert "family-wise" not in box
    name = next((done / "group").glob("*faceMinusHouse_desc-gampBgLrMean_stat-pip_statmap.nii.gz")).name
    assert name in said  # the name of the file, not only the words of a link
    top = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page[: page.index('<dl class="answer">')])).split())
    assert f"two folds share {np.mean(shared):.0f} % of the selected voxels" in top and name in top


@pytest.mark.figures
def test_the_group_page_in_a_browser(done, browser):
    page = browser.open(done / "index.html")
    page.run("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    wide = "[...document.querySelectorAll('.scroll')].filter(each => each.scrollWidth > each.clientWidth + 1)"
    assert page.run(f"{wide}.length") == 0
    assert page.run("document.querySelectorAll('table.sortable th button').length") > 0
    assert page.requests == [] and page.complaints == []


def test_terminal_and_group_page_say_the_same(done, bids_tree, tmp_path, capsys):
    out = shutil.copytree(done, tmp_path / "out")
    assert main([str(bids_tree.root), str(out), "group"]) == 0
    said, page = capsys.readouterr(), html.unescape((out / "index.html").read_text())
    head, *lines = said.out.strip().splitlines()
    for line in (head, *lines):
        for words in re.split(r"\s{2,}", line):
            assert f">{words}<" in page, words
    assert re.split(r"\s{2,}", head)[-3:] == ["significant", "Prevalence", "95 % interval"]
    assert [re.split(r"\s{2,}", line)[1] for line in lines] == ["GAMP BG-LR", "OneBitCS"]
    for start in (
        "Accuracy: mean over participants",
        "Significant: participants whose test (sign test over",
    ):
        (sentence,) = [line for line in said.err.splitlines() if line.startswith(start)]
        assert f">{sentence}" in page


def test_an_incomplete_participant_is_not_part_of_the_group(done, bids_tree, tmp_path, capsys):
    out = shutil.copytree(done, tmp_path / "out")
    next((out / "sub-02").glob("*gampBgLr_stat-pattern*.nii.gz")).unlink()
    (out / "sub-03" / "summary.json").unlink()
    assert main(group(bids_tree, out)) == 1
    said = capsys.readouterr().err
    assert re.search(r"sub-02 is not part of the group: \S*pattern\S* is missing \(1 in all\)", said)
    assert "sub-03 is not part of the group" in said and "summary.json is missing" in said
    assert {row["subject"] for row in read_tsv(out / "group_accuracy.tsv")} == {"01"}
    assert "sub-02 is not part of the group" in (out / "index.html").read_text()


def test_permutation_tests_are_used_where_they_are(done, bids_tree, options, tmp_path):
    """One of two methods has them: its minimum statistic is shown, the other is tested over runs."""
    copy = shutil.copytree(done, tmp_path / "out")
    assert main(participant(bids_tree, copy, *options, "--permutations", "29", "--resume")) == 0
    people = [(read_results(copy / f"sub-{label}"), label) for label in ("01", "02", "03")]
    p_values = [number(person.inference_rows()[0]["p_value"]) for person, _ in people]
    for person, label in people:
        (told,) = person.inference_rows()[:1]
        null = read_tsv(person.folder.cell_table(label, "faceMinusHouse", "gamp-bg-lr", "permutations"))
        score, area = number(told["accuracy_percent"]) / 100, number(told["auc"])
        given = [[number(line[name]) for line in null] for name in ("accuracy", "auc")]
        place = places([round(score, 6), *given[0]], [area, *given[1]])
        p = max(share_as_good(place), number(told["smallest_p_value"]))
        assert number(told["p_value"]) == pytest.approx(p, rel=1e-5)  # the tables have all that it takes
    assert main(group(bids_tree, copy)) == 0
    row, other = read_tsv(copy / "group_summary.tsv")
    assert row["test"] == "permutation" and row["significant"] == str(sum(p <= 0.05 for p in p_values))
    each = [number(line["p_value"]) for line in read_tsv(copy / "group_accuracy.tsv")]
    assert each[::2] == pytest.approx(p_values, rel=1e-5)
    assert number(row["minimum_bound"]) > 0 and other["minimum_bound"] == "n/a"
    page = (copy / "index.html").read_text()
    assert "minimum statistic" in page and "smaller prevalences rejected" in page and "sign test" in page


# --- again


@pytest.mark.slow
@pytest.mark.figures
def test_killed_and_resumed_is_identical_to_unbroken(done, bids_tree, options, tmp_path):
    out = tmp_path / "killed"
    command = [sys.executable, "-c", KILLED, *participant(bids_tree, out, *options)]
    child = subprocess.run(command, cwd=ROOT, env=dict(os.environ))
    assert child.returncode == -signal.SIGKILL
    assert (out / "sub-01" / "summary.json").exists() and not (out / "sub-02" / "summary.json").exists()
    assert len(list(out.glob("sub-*/work/*.npz"))) == 3
    assert not (out / "sub-03").exists()
    assert main(group(bids_tree, out)) == 1  # sub-02 is not finished
    assert main([str(bids_tree.root), str(out), "participant", "--resume", "--quiet"]) == 0
    assert main(group(bids_tree, out)) == 0
    assert tables(out) == tables(done)
    assert not list(out.rglob(".writing-*"))


@pytest.mark.figures
def test_a_participant_can_be_repeated_from_its_own_config(done, bids_tree, tmp_path):
    config = done / "sub-02" / "config.toml"
    again = tmp_path / "again"
    more = ("--participant-label", "02", "--config", str(config), "--quiet")
    assert main(participant(bids_tree, again, *more)) == 0
    mine = {name: content for name, content in tables(again).items() if name.startswith("sub-02/")}
    assert mine == {name: content for name, content in tables(done).items() if name.startswith("sub-02/")}


def test_participants_may_come_in_several_commands_but_with_the_same_settings(bids_tree, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(participant(bids_tree, out, *QUICK, "--participant-label", "01")) == 0
    assert main(participant(bids_tree, out, *QUICK, "--participant-label", "sub-02")) == 0
    assert main(participant(bids_tree, out, *QUICK, "--participant-label", "03", "--samples", "block")) == 2
    assert "samples was tr, now block" in capsys.readouterr().err
    assert main(participant(bids_tree, out, *QUICK)) == 2  # sub-01 is there: --resume or --overwrite
    assert "--resume" in capsys.readouterr().err
    assert not (out / "sub-03").exists()


@pytest.mark.figures
def test_reports_only_rebuilds_the_pages(done, bids_tree, tmp_path):
    out = shutil.copytree(done, tmp_path / "out")
    before = (out / "sub-01" / "index.html").read_bytes()
    (out / "sub-01" / "index.html").unlink()
    assert main(participant(bids_tree, out, "--reports-only", "--quiet", "--participant-label", "01")) == 0
    assert (out / "sub-01" / "index.html").read_bytes() == before


# --- with permutation tests, here and on a cluster of which a worker dies

TESTED = ("--methods", "gamp-bg-lr", "--contrasts", "face:house", "--permutations", "60", "--quiet")


@pytest.fixture(scope="module")
def tested(bids_tree, tmp_path_factory):
    """Three participants with their permutation tests, and the group."""
    out = tmp_path_factory.mktemp("tested") / "out"
    assert main(participant(bids_tree, out, *TESTED)) == 0
    assert main(group(bids_tree, out)) == 0
    return out


def test_the_group_takes_the_participants_own_permutation_tests(tested):
    for row in read_tsv(tested / "group_accuracy.tsv"):
        (own,) = read_tsv(tested / f"sub-{row['subject']}" / f"sub-{row['subject']}_{SHARED}inference.tsv")
        assert row["test"] == "permutation"
        assert number(row["p_value"]) == pytest.approx(number(own["p_value"]), rel=1e-5)
    (together,) = read_tsv(tested / "group_summary.tsv")
    assert together["test"] == "permutation" and together["minimum_p_value"] != "n/a"
    assert "Inference" in (tested / "sub-01" / "index.html").read_text()


def kill_a_worker(cluster, started: Path, killed: list[int]) -> None:
    """Wait for the first stored fits, then kill the process of one worker."""
    for _ in range(1200):
        if any(started.glob("sub-*/work/*.npz")):
            worker = next(iter(cluster.workers.values()))
            killed.append(worker.pid)
            os.kill(worker.pid, signal.SIGKILL)
            return
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # a killed worker makes the cluster complain
@pytest.mark.figures
def test_a_cluster_that_loses_a_worker_gives_the_same_tables(tested, bids_tree, tmp_path):
    distributed = pytest.importorskip("distributed")
    out, killed = tmp_path / "out", []
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        watcher = threading.Thread(target=kill_a_worker, args=(cluster, out, killed))
        watcher.start()
        assert main(participant(bids_tree, out, *TESTED, "--dask", cluster.scheduler_address)) == 0
        watcher.join()
    assert killed
    assert main(group(bids_tree, out)) == 0
    assert tables(out) == tables(tested)


@pytest.mark.figures
def test_participants_side_by_side_are_those_of_one_by_one(bids_tree, tmp_path, capfd):
    """Each by a process of its own; one that cannot be analysed is skipped with its sentence."""
    alone, beside = tmp_path / "alone", tmp_path / "beside"
    events = next(bids_tree.func("03").glob("*run-01_events.tsv"))
    text = events.read_text()
    events.write_text("onset\tduration\n1\t2\n")
    try:
        assert main(participant(bids_tree, alone, *QUICK)) == 1
        first = capfd.readouterr()
        assert main(participant(bids_tree, beside, *QUICK, "--n-jobs", "2")) == 1
        second = capfd.readouterr()
    finally:
        events.write_text(text)
    assert tables(beside) == tables(alone)
    for said in (first.err, second.err):
        assert re.search(r"^sub-03: skipped\. .*trial_type is missing", said, flags=re.MULTILINE)
        assert "2 of 3 participants analysed" in said and "1 not:" in said
    assert [line for line in second.out.splitlines() if line.startswith("sub-")] == [
        "sub-01",
        "sub-02",
        "sub-03",
    ]
    log = (beside / "sub-01" / "logs" / "run.log").read_text()
    assert "Page:" in log


def blind_to(folder: str) -> None:
    """From now on this process finds nothing at ``folder`` or below it, like a machine without that disk."""
    exists = Path.exists
    Path.exists = lambda self: not str(self).startswith(folder) and exists(self)


@pytest.mark.slow
def test_workers_that_do_not_see_the_files_get_fits_instead_of_participants(bids_tree, tmp_path, capfd):
    """One of two is enough: participants are then done here one by one, and only fits are sent."""
    distributed = pytest.importorskip("distributed")
    alone, out = tmp_path / "alone", tmp_path / "out"
    only = (*QUICK[:-1], "--participant-label", "01", "02")
    assert main(participant(bids_tree, alone, *only)) == 0
    needed = [str(bids_tree.root), str(alone / "config.toml")]
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        where = cluster.scheduler_address
        assert participants._answers_of_all(where, needed) == [True, True]
        with distributed.Client(cluster) as client:
            worker = next(iter(client.scheduler_info()["workers"]))
            client.run(blind_to, str(out), workers=[worker])
            assert participants._answers_of_all(where, needed) == [True, True]
            client.run(blind_to, str(bids_tree.root), workers=[worker])
        assert sorted(participants._answers_of_all(where, needed)) == [False, True]
        assert sorted(participants._answers_of_all(where, [str(out.parent)])) == [True, True]
        capfd.readouterr()
        assert main(participant(bids_tree, out, *only, "--dask", where)) == 0
        assert sorted(participants._answers_of_all(where, [str(out)])) == [False, True]
    said = capfd.readouterr().err
    assert (
        f"Not every worker has access to {bids_tree.root} and {out}" in said and "one after the other" in said
    )
    assert "in parallel" not in said
    assert tables(out) == tables(alone)


def test_participants_whose_worker_dies_twice_are_told(bids_tree, tmp_path, monkeypatch, capsys):
    def broken(function, tasks, shared, workers):
        yield _Told(None, "", "")
        raise RuntimeError("a process was terminated")

    monkeypatch.setattr(participants, "run_tasks", broken)
    out = tmp_path / "out"
    assert main(participant(bids_tree, out, *QUICK, "--n-jobs", "2")) == 1
    said = capsys.readouterr().err
    assert "sub-03: skipped. its worker ended (RuntimeError)" in said and "--resume" in said
    assert "2 of 3 participants analysed" in said  # one answer came in each of two tries


def test_help_names_the_levels_and_options_win_over_config(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('[bids]\nbids_dir = "x"\nspace = "T1w"\n[study]\nseed = 3\n')
    given = vars(
        build_parser().parse_args(["ds", "out", "participant", "--config", str(config), "--seed", "4"])
    )
    settings = study_settings(given)
    assert (settings.source.bids_dir, settings.source.space, settings.seed) == ("ds", "T1w", 4)
    assert "participant|group" in build_parser().format_help()


# --- what cannot be run


def refused(arguments, capsys, *words):
    """The command cannot be run: one sentence, code 2, nothing written."""
    out = Path(arguments[1])
    existed = out.exists()
    assert main(arguments) == 2
    message = [line for line in capsys.readouterr().err.splitlines() if line.startswith("mvpa_gamp: error: ")]
    assert len(message) == 1
    for word in words:
        assert word in message[0], message[0]
    assert existed or not out.exists()


def each_events(tree, label, old, new):
    for path in tree.func(label).glob("*_events.tsv"):
        path.write_text(path.read_text().replace(old, new))


def spoil(tree) -> dict[str, str]:
    """Spoil all participants but the first, each in another way; what the sentence about each must say."""
    each_events(tree, "02", "trial_type", "stimulus")
    next(tree.func("03").glob("*_run-03_events.tsv")).unlink()
    for path in list(tree.func("04", True).glob("*_bold.nii.gz"))[1:]:
        path.unlink()
    for path in list(tree.func("05", True).glob(f"*space-{SPACE}*")):
        path.rename(path.with_name(path.name.replace(SPACE, "T1w")))
    path = next(tree.func("06", True).glob("*_bold.nii.gz"))
    path.write_bytes(path.read_bytes()[:2000])
    for path in tree.func("07", True).glob("*timeseries.tsv"):
        path.write_text(path.read_text().replace("rot_z\t", "roll\t", 1))
    each_events(tree, "08", "house", "barn")
    (tree.root / "sub-09" / "sub-09_bold.json").write_text('{"RepetitionTime": null}')
    next(tree.func("10", True).glob("*run-02*_mask.nii.gz")).unlink()
    shutil.rmtree(tree.derivatives / "sub-11")
    return {
        "02": "trial_type is missing. Add it",
        "03": r"Without an events\.tsv .*: sub-03 \(task-objectviewing run-03\)\. Add .*--run-label or",
        "04": "expected at least 2 runs of task objectviewing.*got 1",
        "05": r"--space: expected one that sub-05 has \(T1w\), got 'MNI152NLin2009cAsym'",
        "06": "corrupt, truncated",
        "07": "has no column rot_z.*such as rot_y, rot_x",
        "08": "--contrasts: .*names 'house', which the data do not contain",
        "09": "RepetitionTime in seconds.*got none.*--t-r",
        "10": "desc-brain_mask next to every run, found none for .*run-02",
        "11": "has no folder sub-11. Preprocess the participant",
    }


def test_who_cannot_be_analysed_is_skipped_with_a_sentence_and_counted(make_bids_tree, tmp_path, capsys):
    labels = tuple(f"{k:02d}" for k in range(1, 12))
    tree, out = make_bids_tree(tmp_path / "ds", labels, (), n_runs=4), tmp_path / "out"
    sentences = spoil(tree)
    assert main(participant(tree, out, *QUICK, "--space", SPACE)) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "1 of 11 participants analysed" in said and "10 not: sub-02, sub-03, " in said
    for label, words in sentences.items():
        assert re.search(rf"^sub-{label}: skipped\. .*{words}", said, flags=re.MULTILINE), said
        assert len(re.findall(words, said)) == 1, words
        assert not (out / f"sub-{label}").exists()
    assert (out / "sub-01" / "index.html").is_file()
    assert not list(tmp_path.rglob(".writing-*"))

    # The group knows who is missing, and that four runs are too few for a test at 0.05.
    assert main([str(tree.root), str(out), "group"]) == 0
    page, said = (out / "index.html").read_text(), capsys.readouterr().err
    assert all(f"sub-{label} was skipped" in page for label in sentences)
    assert "Skipped at the participant level: sub-02, sub-03, " in said and "was skipped" not in said
    assert "There is only one participant: " in said and "There is only one participant: " in page
    assert "1 participants" not in said and "below 1" not in said
    assert "smallest p-value is 0.15" in page
    assert read_tsv(out / "group_summary.tsv")[0]["prevalence"] == "n/a"

    # A repaired participant is no longer missing.
    each_events(tree, "08", "barn", "house")
    more = ("--space", SPACE, "--participant-label", "08")
    assert main(participant(tree, out, *QUICK, *more)) == 0
    assert not (out / "logs" / "sub-08_skipped.json").exists()


def test_spaces_that_differ_make_no_mean_map(copy, tmp_path, capsys):
    for path in list(copy.func("01", True).glob(f"*space-{SPACE}*")):
        path.rename(path.with_name(path.name.replace(SPACE, "MNI152NLin6Asym")))
    out = tmp_path / "out"
    assert main(participant(copy, out, *QUICK)) == 0
    assert main([str(copy.root), str(out), "group"]) == 0
    said = capsys.readouterr().err
    assert f"different spaces: MNI152NLin6Asym: sub-01; {SPACE}: sub-02, sub-03" in said
    assert not (out / "group").exists()
    assert "different spaces" in (out / "index.html").read_text()
    assert main(group(copy, out, "--participant-label", "02", "03")) == 0
    assert (out / "group" / f"{SHARED}desc-common_mask.nii.gz").is_file()
    assert main(group(copy, out, "--participant-label", "01", "02")) == 0
    assert not (out / "group").exists()  # maps of another group do not stay behind


def test_grids_that_differ_make_no_mean_map(bids_tree, make_bids_tree, tmp_path, capsys):
    other = make_bids_tree(tmp_path / "ds", ("04",), (), shape=(8, 11, 9))
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    assert main(participant(bids_tree, out, *QUICK, "--participant-label", "01")) == 0
    assert main(participant(other, elsewhere, *QUICK)) == 0
    shutil.copytree(elsewhere / "sub-04", out / "sub-04")
    assert main([str(bids_tree.root), str(out), "group"]) == 0
    assert re.search(r"different grids: 9 x 11 x 9 .*sub-01; 8 x 11 x 9 .*sub-04", capsys.readouterr().err)


def test_repetition_time_missing_everywhere(copy, tmp_path, capsys):
    (copy.root / "task-objectviewing_bold.json").unlink()
    out = tmp_path / "out"
    words = ("RepetitionTime in seconds", "got none", "--t-r", "This applies to all 3 participants.")
    refused(participant(copy, out, *QUICK), capsys, *words)
    refused(participant(copy, out, *QUICK, "--participant-label", "02"), capsys, "RepetitionTime", "--t-r")
    assert main(participant(copy, out, *QUICK, "--t-r", "2.5", "--participant-label", "01")) == 0


def test_settings_that_nobody_could_be_analysed_with_bind_nobody(copy, tmp_path, capsys):
    out = tmp_path / "out"
    one = ("--participant-label", "01")
    whole = {path: path.read_bytes() for path in copy.func("01", True).glob("*_bold.nii.gz")}
    for path, content in whole.items():  # not to be seen without reading the volumes
        path.write_bytes(content[:2000])
    assert main(participant(copy, out, *QUICK, *one)) == 1
    assert "0 of 1 participant analysed" in capsys.readouterr().err
    assert not list(out.glob("sub-*"))
    refused(group(copy, out), capsys, "found none")
    for path, content in whole.items():
        path.write_bytes(content)
    more = ("--t-r", "2.5", *one)  # another setting, but nobody has results yet
    assert main(participant(copy, out, *QUICK, *more)) == 0
    assert main(participant(copy, out, *QUICK, *more, "--overwrite")) == 0


def test_what_is_wrong_with_the_files_of_all_is_said_once(copy, tmp_path, capsys):
    for label in ("01", "02", "03"):
        each_events(copy, label, "trial_type", "stimulus")
    for path in copy.root.glob("sub-02/ses-*/func/*_events.tsv"):
        path.write_text(path.read_text().replace("trial_type", "stimulus"))
    out = tmp_path / "out"
    refused(participant(copy, out, *QUICK), capsys, "trial_type is missing", "applies to all 3 participants")
    assert main(participant(copy, out, *QUICK, "--participant-label", "01")) == 1  # its own matter: a skip
    assert (out / "logs" / "sub-01_skipped.json").is_file()
    shutil.rmtree(out)
    shutil.rmtree(copy.derivatives / "sub-03")
    words = ("None of the 3 participants", "trial_type", "has no folder sub-03")
    refused(participant(copy, out, *QUICK), capsys, *words)


def test_missing_events_name_every_participant_and_its_runs(copy, tmp_path, capsys):
    for path in [
        *copy.root.glob("sub-01/func/*_events.tsv"),
        *copy.root.glob("sub-03/func/*_run-02_events.tsv"),
    ]:
        path.unlink()
    two = ("--participant-label", "01", "03")
    given = participant(copy, tmp_path / "out", *QUICK, *two)
    named = "sub-01 (all 6 runs); sub-03 (task-objectviewing run-02). Add"
    refused(given, capsys, named, "--run-label or --bids-filter-file", "--samples betas")
    assert "applies to all" not in str(main(given)) + capsys.readouterr().err
    others = [str(k) for k in (1, 3, 4, 5, 6)]
    more = ("--participant-label", "03", "--run-label", *others, "--quiet")
    assert main(participant(copy, tmp_path / "out", *QUICK, *more)) == 0
    each_events(copy, "02", "trial_type", "stimulus")
    for path in copy.root.glob("sub-02/ses-*/func/*_events.tsv"):
        path.write_text(path.read_text().replace("trial_type", "stimulus"))
    given = participant(copy, tmp_path / "other", *QUICK)
    refused(given, capsys, named, "trial_type is missing")


def test_a_mask_on_another_grid_than_everyone(bids_tree, tmp_path, capsys):
    away = np.eye(4)
    away[:3, 3] = 900
    nibabel.save(nibabel.Nifti1Image(np.ones((4, 4, 4), dtype=np.uint8), away), tmp_path / "mask.nii")
    given = participant(bids_tree, tmp_path / "out", *QUICK, "--mask", str(tmp_path / "mask.nii"))
    refused(given, capsys, "another grid", "outside the field of view", "all 3 participants")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--space", "T1w"), ("--space", "(MNI152NLin2009cAsym)", "'T1w'")),
        (("--task", "rest"), ("--task", "objectviewing")),
        (("--contrasts", "face:dog"), ("--contrasts", "'dog'", "'button', 'cat', 'house'")),
        (
            ("--contrasts", "face:hause"),
            ("--contrasts", "Did you mean 'house'? Other conditions", "'button'"),
        ),
        (("--participant-label", "09"), ("--participant-label", "01, 02, 03", "09")),
        (("--methods", "magic"), ("--methods", "'magic'")),
        (("--samples", "betas"), ("--betas",)),
        (("--betas", "/nowhere", "--high-pass", "0.01"), ("--high-pass does not apply",)),
        (("--derivatives", "/nowhere"), ("--derivatives /nowhere",)),
        (("--confounds", "none,motion6"), ("none cannot be combined",)),
        (("--confounds", "motoin6"), ("has no column motoin6", "Did you mean motion6?", "applies to all 3")),
        (("--confounds", "trans_X", "--participant-label", "01"), ("no column trans_X", "trans_x")),
        (
            ("--derivatives", "none", "--confounds", "motion6"),
            ("found none", "--confounds none", "applies to all 3"),
        ),
        (("--mask", "/nowhere.nii.gz"), ("mask /nowhere.nii.gz", "nothing there")),
        (("--high-pass", "1"), ("high_pass", "0.2 Hz", "applies to all 3")),
        (("--n-jobs", "0"), ("--n-jobs: expected 1 or more",)),
        (("--lag-trs", "-1"), ("lag_trs",)),
    ],
)
def test_what_is_wrong_for_everyone_is_refused(bids_tree, tmp_path, capsys, more, words):
    refused(participant(bids_tree, tmp_path / "out", *QUICK, *more), capsys, *words)


def test_a_choice_left_open_is_refused(copy, tmp_path, capsys):
    for path in list(copy.func("01", True).glob(f"*space-{SPACE}*")):
        shutil.copy(path, path.with_name(path.name.replace(SPACE, "T1w")))
    words = (f"sub-01 has several ({SPACE}, T1w)", f"For example: --space {SPACE}")
    refused(participant(copy, tmp_path / "out", *QUICK), capsys, *words)
    for path in list(copy.func("01", True).glob("*")):
        shutil.copy(path, path.with_name(path.name.replace("task-objectviewing", "task-rest")))
    both = ("--task: the dataset has several", "--space: sub-01 has several")
    example = f"For example: --task objectviewing --space {SPACE}"
    refused(participant(copy, tmp_path / "out", *QUICK), capsys, *both, example)


def test_the_group_level_says_which_options_it_does_not_use(done, bids_tree, tmp_path, capsys):
    out = shutil.copytree(done, tmp_path / "out")
    assert main([str(bids_tree.root), str(out), "group", "--methods", "cdn"]) == 0
    assert "--methods is not used" in capsys.readouterr().err


def test_folders_that_are_not_ours_or_not_there(bids_tree, tmp_path, capsys):
    refused([str(tmp_path / "no"), str(tmp_path / "out"), "participant"], capsys, "BIDS_DIR")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"x")
    refused(participant(bids_tree, tmp_path / "photos", *QUICK), capsys, "OUT", "contains other files")
    refused(group(bids_tree, tmp_path / "out"), capsys, "Run the participant level first")
    refused(group(bids_tree, tmp_path / "out", "--alpha", "2"), capsys, "--alpha")


def test_two_sessions_two_tasks_single_trials(make_bids_tree, tmp_path, capsys):
    """Trials of two tasks, one session held out at a time; predictions tell which event they are of."""
    tree = make_bids_tree(tmp_path / "ds", ("02",), shape=(6, 7, 6), n_runs=4)
    for path in sorted(tree.root.rglob("*task-objectviewing*")):
        shutil.copy(path, path.with_name(path.name.replace("objectviewing", "localizer")))
    asked = ("--task", "objectviewing", "--task", "localizer", "--samples", "trial", "--cv", "session")
    contrasts = ("--contrasts", "face:house", "face:cat", "--methods", "gamp-bg-pr", "--quiet")
    out = tmp_path / "out"
    assert main(participant(tree, out, *asked, *contrasts)) == 0
    study = json.loads((out / "sub-02" / "summary.json").read_text())
    assert study["held_out"] == "session" and study["data"]["kind"] == "trial"
    rows = read_tsv(next(out.rglob("*faceMinusHouse*_predictions.tsv")))
    assert {row["run"] for row in rows} == {"1", "2"} and len(rows) == 2 * 8
    assert all(row["onset"] and row["event_line"] for row in rows)
    again = tmp_path / "again"
    config = ("--config", str(out / "config.toml"), "--quiet")
    assert main(participant(tree, again, *config)) == 0
    assert (again / "sub-02/summary.tsv").read_bytes() == (out / "sub-02/summary.tsv").read_bytes()
    # other samples into the same folder: what is said is about the samples, not about options not given
    refused(participant(tree, out, "--resume", "--samples", "tr"), capsys, "samples was trial, now tr")
    assert main(group(tree, out)) == 0
    page = html.unescape((out / "index.html").read_text())
    assert "Single trials of 1 participants" not in page and "Single trials of 1 participant were" in page
    assert ": face vs house, face vs cat. Effects of single trials were estimated run by run" in page


def test_what_trials_cannot_have_is_refused_before_anything_is_written(bids_tree, tmp_path, capsys):
    for options, sentence in (
        (("--samples", "trial", "--lag-trs", "2"), "--lag-trs does not apply to --samples trial"),
        (("--trial-model", "lsa"), "--trial-model is for --samples trial, got tr. Leave it out."),
        (("--session-label", "07"), "--session-label: expected some of those of sub-01 (none), got '07'"),
        (("--confounds-strategy", "simple", "--confounds", "csf"), "both choose columns"),
    ):
        out = tmp_path / "out"
        assert main(participant(bids_tree, out, *QUICK, *options)) == 2
        assert sentence in capsys.readouterr().err and not out.exists()
