"""--atlas and --by-region: tables whose sums are the whole, planted regions first, jobs that are resumed."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import nibabel
import numpy as np
import pytest

from mvpa_gamp import __main__ as bids_command
from mvpa_gamp.decoding import FoldConfounds, decode_regions, fit_confounds, make_tasks
from mvpa_gamp.decoding.exchange import blocks_of_volumes
from mvpa_gamp.decoding.fit import Scheme
from mvpa_gamp.decoding.preparation import Unchanged
from mvpa_gamp.haxby import main
from mvpa_gamp.imaging.atlas import open_atlas
from mvpa_gamp.imaging.regions import OUTSIDE
from mvpa_gamp.imaging.samples import load_samples
from mvpa_gamp.methods import METHODS
from mvpa_gamp.report.methods_text import regions_text
from mvpa_gamp.report.page import section as section_of
from mvpa_gamp.report.terminal import region_lines
from mvpa_gamp.results.files import MISSING, number, read_tsv
from mvpa_gamp.results.names import ResultsFolder
from mvpa_gamp.results.reader import missing_files, read_results, result_files
from mvpa_gamp.results.regions import EVERYTHING, SUMS
from mvpa_gamp.study.analyses.regions import ByRegion, portions
from mvpa_gamp.study.comparisons import blocks_of
from mvpa_gamp.study.output import Output
from mvpa_gamp.study.plan import plan_cells
from mvpa_gamp.study.settings import StudySettings

pytestmark = pytest.mark.whole

NASTY = "<b>first & 'second'</b> $x_1$"
PERMUTATIONS, SEED = 7, 3
METHODS_USED = ("gamp-bg-lr", "onebit-cs")
STEM = "sub-tiny/sub-tiny_contrast-faceMinusHouse_desc-{}_regions"


@pytest.fixture(scope="module")
def atlas(tiny, tmp_path_factory):
    """Slabs of the tiny grid: 1 and 2 hold the effect, 3 is too small to decode, 5 is outside the mask."""
    values = np.zeros((6, 7, 4), dtype=np.int16)
    values[1], values[2], values[3, 1:3, 1], values[4], values[0] = 1, 2, 3, 4, 5
    path = tmp_path_factory.mktemp("atlas") / "atlas-slabs_dseg.nii.gz"
    nibabel.save(nibabel.Nifti1Image(values, nibabel.load(tiny.mask).affine), path)
    names = {1: NASTY, 2: "second\u00a0slab", 3: "corner", 4: "fourth", 5: "beyond"}
    lines = ["index\tname", *(f"{index}\t{name}" for index, name in names.items())]
    path.with_name("atlas-slabs_dseg.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def options(tiny, atlas, out, *more):
    chosen = () if "--methods" in more else ("--methods", *METHODS_USED)
    return tiny.options(
        out, *chosen, "--pairs", "face:house", "--seed", str(SEED), "--atlas", str(atlas), "--quiet", *more
    )


@pytest.fixture(scope="module")
def done(tiny, atlas, tmp_path_factory):
    out = tmp_path_factory.mktemp("regions") / "results"
    assert main(options(tiny, atlas, out, "--by-region", "--permutations", str(PERMUTATIONS))) == 0
    return out


def rows_of(out, method):
    return read_tsv(out / f"{STEM.format(method)}.tsv")


def manifest(out):
    rows = read_tsv(out / "logs" / "manifest.tsv")
    return {row["path"]: row["sha256"] for row in rows if row["path"] not in ("config.toml", "summary.json")}


# --- tables


@pytest.mark.parametrize("method", ["gampBgLr", "onebitCs"])
def test_sums_over_regions_are_the_whole(done, method):
    *parts, whole = rows_of(done, method)
    assert [row["region"] for row in (parts[-1], whole)] == [OUTSIDE, EVERYTHING]
    for column in SUMS:
        if whole[column] != MISSING:
            assert sum(number(row[column]) for row in parts) == number(whole[column]), column
    assert (method == "onebitCs") == (whole["summed_inclusion"] == MISSING)
    assert sum(number(row["weight_share_percent"]) for row in parts) == pytest.approx(100, abs=1e-3)


def test_the_table_says_what_the_maps_say(done, atlas):
    image = nibabel.load(done / "sub-tiny" / "sub-tiny_desc-regions_dseg.nii.gz")
    labels = np.asarray(image.dataobj)
    stem = "sub-tiny/sub-tiny_contrast-faceMinusHouse_desc-gampBgLr_stat-{}_statmap.nii.gz"
    weight, inclusion = (np.asarray(nibabel.load(done / stem.format(s)).dataobj) for s in ("weight", "pip"))
    for row in rows_of(done, "gampBgLr")[:-2]:
        inside = labels == int(row["index"])
        assert int(row["voxels"]) == inside.sum()
        assert number(row["summed_inclusion"]) == pytest.approx(inclusion[inside].sum(), rel=1e-6)
        assert number(row["summed_abs_weight"]) == pytest.approx(np.abs(weight[inside]).sum(), rel=1e-6)
        assert int(row["selected_voxels"]) == (inclusion[inside] > 0.5).sum()
        peak = np.unravel_index(np.argmax(np.abs(weight) * inside), weight.shape)
        place = nibabel.affines.apply_affine(image.affine, peak)
        np.testing.assert_allclose([number(row[f"peak_{a}_mm"]) for a in "xyz"], place, atol=1e-3)
        assert number(row["peak_weight"]) == pytest.approx(weight[peak], rel=1e-5)
    original = np.asarray(nibabel.load(atlas).dataobj)
    np.testing.assert_array_equal(labels[labels > 0], original[labels > 0])


def test_regions_are_decoded_without_what_covariates_explain(tiny, atlas, tmp_path):
    """The command, Python and an X cleaned fold by fold by hand say the same of every region."""
    samples = load_samples(tiny.bold, tiny.labels, tiny.mask)
    (task,) = make_tasks(samples.conditions, [("face", "house")])
    values = np.random.default_rng(2).standard_normal((len(samples.runs), 1))
    values[:, 0] += 3 * (samples.conditions == "face")
    np.savetxt(tmp_path / "rt.tsv", values, header="rt", comments="")
    out = tmp_path / "out"
    asked = ("--by-region", "--permutations", "5", "--fold-confounds", str(tmp_path / "rt.tsv"))
    assert main(options(tiny, atlas, out, "--methods", "gamp-bg-lr", *asked)) == 0
    told = {row["region"]: row for row in rows_of(out, "gampBgLr")}
    regions, method = open_atlas(str(atlas)).regions(samples.mask_img), METHODS["gamp-bg-lr"]
    places = [0, 1]
    found = decode_regions(
        method,
        samples.X,
        task.y,
        samples.runs,
        [regions.voxels(place) for place in places],
        5,
        scheme=Scheme(
            seed=SEED,
            blocks=blocks_of_volumes(samples.conditions, samples.runs, samples.volumes)[task.rows],
            preparation=FoldConfounds(values),
            rows=task.rows,
        ),
    )
    for k, place in enumerate(places):
        row = told[regions.names[place]]
        assert number(row["accuracy_percent"]) == pytest.approx(100 * found.accuracy[k], rel=1e-5)
        assert number(row["p_value"]) == pytest.approx(found.pvalue[k], rel=1e-5)
        right = []
        for run in np.unique(samples.runs):
            train = samples.runs != run
            clean = fit_confounds(samples.X, values, train).apply(samples.X, values)
            X = np.ascontiguousarray(clean[task.rows][:, regions.voxels(place)])
            fits = method.fit_folds(X, task.y, train[task.rows][:, None], samples.runs[task.rows])
            tested = ~train[task.rows]
            right.append(((fits.decision[tested, 0] > 0) == (task.y[tested] > 0)).mean())
        assert found.accuracy[k] == pytest.approx(np.mean(right), abs=1e-12)


def test_names_and_regions_left_out_are_in_the_files(done):
    rows = read_tsv(done / "sub-tiny" / "sub-tiny_desc-regions_dseg.tsv")
    assert {row["index"]: row["name"] for row in rows} == {
        "1": NASTY, "2": "second slab", "3": "corner", "4": "fourth",
    }  # fmt: skip
    found = read_results(done).summary.regions
    assert found["missing"] == ["beyond"] and found["too_small"] == ["corner"] and found["outside"] == 13
    sidecar = json.loads((done / f"{STEM.format('gampBgLr')}.json").read_text())
    assert set(rows_of(done, "gampBgLr")[0]) < set(sidecar) and sidecar["Permutations"] == PERMUTATIONS


def test_all_files_are_promised_and_there(done):
    results = read_results(done)
    promised = {path.relative_to(done).as_posix() for path in result_files(results)}
    written = {path.relative_to(done).as_posix() for path in done.rglob("*") if "egions" in path.name}
    assert {p for p in written if p.startswith("sub-tiny/")} <= promised and not missing_files(results)


def test_clusters_name_the_region_of_their_peak(done):
    names = [row["region"] for row in read_tsv(done / "sub-tiny" / "sub-tiny_clusters.tsv")]
    assert NASTY in names and set(names) <= {NASTY, "second slab", "corner", "fourth", OUTSIDE}


# --- accuracies


def test_accuracies_and_p_values_are_those_of_decode_regions(done, tiny, atlas):
    samples = load_samples(tiny.bold, tiny.labels, tiny.mask)
    (task,) = make_tasks(samples.conditions, [("face", "house")])
    regions = open_atlas(str(atlas)).regions(samples.mask_img)
    blocks = blocks_of_volumes(samples.conditions, samples.runs, samples.volumes)[task.rows]
    places = [0, 1, 3]
    direct = decode_regions(
        METHODS["gamp-bg-lr"],
        samples.X[task.rows],
        task.y,
        samples.runs[task.rows],
        [regions.voxels(k) for k in places],
        n=PERMUTATIONS,
        scheme=Scheme(seed=SEED, blocks=blocks),
    )
    rows = {row["region"]: row for row in rows_of(done, "gampBgLr")}
    for k, place in enumerate(places):
        row = rows[regions.names[place]]
        assert number(row["accuracy_percent"]) == pytest.approx(100 * direct.accuracy[k], rel=1e-5)
        assert number(row["p_value"]) == pytest.approx(direct.pvalue[k], rel=1e-5)
        assert number(row["p_value_fwe"]) == pytest.approx(direct.family_wise[k], rel=1e-5)
    assert rows["corner"]["accuracy_percent"] == rows[OUTSIDE]["p_value"] == MISSING
    error = read_results(done).row("tiny", "faceMinusHouse", "gamp-bg-lr")["error_percent"]
    assert number(rows[EVERYTHING]["accuracy_percent"]) == pytest.approx(100 - error, rel=1e-5)


def test_regions_with_an_effect_come_first(done):
    rows = rows_of(done, "gampBgLr")
    assert {rows[0]["region"], rows[1]["region"]} == {NASTY, "second slab"}
    assert number(rows[1]["accuracy_percent"]) > number(rows[2]["accuracy_percent"]) + 15


def test_planted_regions_of_the_phantom_come_first(tmp_path, monkeypatch):
    """The phantom's own atlas: five planted regions, seven others, and voxels outside."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data = ["--phantom", "--phantom-shape", "14", "18", "16", "--pairs", "face:house", "--quiet"]
    out = tmp_path / "out"
    assert (
        main([*data, "--methods", "gamp-bg-lr", "--atlas", "phantom", "--by-region", "--out", str(out)]) == 0
    )
    stem = out / "sub-phantom" / "sub-phantom_contrast-faceMinusHouse_desc-gampBgLr_regions.tsv"
    *rows, outside, whole = read_tsv(stem)
    assert {row["region"] for row in rows[:2]} == {"lateral fusiform", "parahippocampal"}
    assert number(rows[1]["accuracy_percent"]) > 75
    by_inclusion = sorted(rows, key=lambda row: -number(row["summed_inclusion"]))
    assert by_inclusion[0]["region"] == "lateral fusiform"
    for column in SUMS:
        assert sum(number(row[column]) for row in (*rows, outside)) == number(whole[column])
    config = (out / "config.toml").read_text()
    assert '[regions]\natlas = "phantom"\nby_region = true\n' in config
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.index('id="regions"') > 0 and "mid fusiform" in page and "Not decoded alone" in page


# --- the run


def test_a_resumed_run_with_workers_writes_the_same(done, tmp_path, monkeypatch):
    """From config.toml alone; then everything is stored, and the page can be built again."""
    out = tmp_path / "again"
    shutil.copytree(done, out)
    for path in out.glob("work/*_regions-0001.npz"):
        path.unlink()
    for name in ("sub-tiny", "figures"):
        shutil.rmtree(out / name)
    again = ["--config", str(done / "config.toml"), "--out", str(out), "--resume", "--quiet"]
    assert main([*again, "--n-jobs", "2"]) == 0
    assert manifest(out) == manifest(done)

    def never(*_):
        raise AssertionError("a stored answer was asked for again")

    for name in ("region_scores", "region_null"):
        monkeypatch.setattr(f"mvpa_gamp.study.analyses.regions.{name}", never)
    assert main(again) == 0
    before = (out / "index.html").read_bytes()
    shutil.rmtree(out / "figures")
    assert main(["--reports-only", "--out", str(out), "--quiet"]) == 0
    assert (out / "index.html").read_bytes() == before


def test_regions_can_be_added_to_a_finished_run(tiny, atlas, tmp_path):
    out = tmp_path / "later"
    plain = [o for o in options(tiny, atlas, out) if o not in ("--atlas", str(atlas))]
    assert main(plain) == 0
    assert not list(out.rglob("*egions*")) and 'id="regions"' not in (out / "index.html").read_text()
    assert main([*options(tiny, atlas, out), "--resume"]) == 0
    assert "accuracy_percent" not in rows_of(out, "gampBgLr")[0]


def test_a_job_that_fails_is_told(tiny, atlas, tmp_path, monkeypatch, capsys):
    def fails(*_, **__):
        raise RuntimeError("no luck today")

    monkeypatch.setattr("mvpa_gamp.study.analyses.regions.region_scores", fails)
    out = tmp_path / "failed"
    assert main(options(tiny, atlas, out, "--by-region")) == 1
    assert "regions: failed: RuntimeError: no luck today" in capsys.readouterr().err
    assert "accuracy_percent" not in rows_of(out, "gampBgLr")[0]


def test_the_bids_command_has_regions(bids_tree, tmp_path, monkeypatch):
    """A relative path becomes absolute, so that the settings mean the same from every folder."""
    monkeypatch.chdir(tmp_path)
    image = nibabel.load(next(bids_tree.root.rglob("*desc-brain_mask.nii.gz")))
    values = 1 + np.indices(image.shape)[0] // 3
    atlas = tmp_path / "a_dseg.nii.gz"
    nibabel.save(nibabel.Nifti1Image(values.astype(np.int16), image.affine), atlas)
    out = tmp_path / "out"
    given = [
        str(bids_tree.root),
        str(out),
        "participant",
        "--participant-label",
        "01",
        "--methods",
        "gamp-bg-lr",
    ]
    assert bids_command.main([*given, "--atlas", atlas.name, "--by-region", "--quiet"]) == 0
    tables = list(out.rglob("*desc-gampBgLr_regions.tsv"))
    assert tables and "accuracy_percent" in read_tsv(tables[0])[0]
    for config in (out / "config.toml", out / "sub-01" / "config.toml"):
        assert f'atlas = "{atlas}"' in config.read_text()


# --- page


def test_names_are_harmless_on_the_page(done):
    page = (done / "index.html").read_text(encoding="utf-8")
    assert "<b>first" not in page and "&lt;b&gt;first &amp; &#39;second&#39;&lt;/b&gt; $x_1$" in page
    assert "Region of the peak" in page and "Westfall PH" in page


def test_sections_and_sentences(done, finished):
    results = read_results(done)
    section = section_of(results, "regions")
    assert "Sums over all regions" in section and "p (all regions)" in section and "beyond" in section
    lines = region_lines(results)
    assert len(lines) == 2 and "corrected for all regions" in lines[0] and "of the weight" in lines[1]
    assert "step-down maxima" in regions_text(results)[0]
    plain = read_results(finished)
    assert section_of(plain, "regions") == "" and region_lines(plain) == regions_text(plain) == []


# --- what is refused


def refusals(tmp_path):
    damaged = tmp_path / "damaged.nii.gz"
    damaged.write_bytes(b"no image")
    return {
        ("--by-region",): "--by-region needs regions. Give --atlas FILE or NAME as well.",
        ("--atlas-labels", "x.tsv"): "--atlas-labels needs regions. Give --atlas",
        ("--atlas", "nowhere.nii.gz"): "or one of harvard_oxford",
        ("--atlas", "aal"): "nilearn.datasets.fetch_atlas_aal(version='3v2')",
        ("--atlas", str(damaged)): "cannot be read as an image",
        ("--atlas", "phantom"): "--atlas phantom is the phantom's own atlas",
        ("--atlas", "{atlas}", "--atlas-labels", "x.tsv"): "atlas labels x.tsv cannot be read",
        ("--atlas", "{atlas}", "--without-region"): "--without-region is shown beside --by-region",
        ("--atlas", "{atlas}", "--by-region", "--whiten"): "--by-region cannot be used with --whiten",
        ("--atlas", "{atlas}", "--by-region"): "--by-region is for GAMP methods, got onebit-cs",
    }


@pytest.mark.parametrize("number_of", range(9))
def test_bad_input_is_one_sentence_and_writes_nothing(number_of, tiny, atlas, tmp_path, capsys):
    given, sentence = list(refusals(tmp_path).items())[number_of]
    out = tmp_path / "out"
    code = main(tiny.options(out, "--pairs", "face:house", *(part.format(atlas=atlas) for part in given)))
    said = capsys.readouterr().err
    assert code == 2 and sentence in said and not out.exists(), said
    assert said.strip().splitlines()[-1].startswith("mvpa_gamp.haxby: error: ")


def test_an_atlas_of_specks_cannot_be_decoded(tiny, tmp_path, capsys):
    values = np.zeros((6, 7, 4), dtype=np.int16)
    values[2, 2, 1] = 1
    nibabel.save(nibabel.Nifti1Image(values, nibabel.load(tiny.mask).affine), tmp_path / "speck.nii.gz")
    given = tiny.options(tmp_path / "out", "--methods", "gamp-bg-lr", "--by-region")
    assert main([*given, "--atlas", str(tmp_path / "speck.nii.gz")]) == 2
    assert "no region of speck.nii.gz has 5 voxels or more in the mask" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# --- jobs


def test_portions_are_in_order_and_bounded():
    assert portions([5] * 7, 40, 12) == [list(range(7))]
    groups = portions([300, 10, 400, 20, 30], 200, 12_000)
    assert [place for group in groups for place in group] == list(range(5)) and len(groups) > 1


def test_the_voxels_of_a_region_decide_on_what_is_stored(tiny, atlas, tmp_path):
    """Another atlas of as many regions asks its own questions; the same one asks the same."""
    samples = load_samples(tiny.bold, tiny.labels, tiny.mask)
    tasks = make_tasks(samples.conditions, [("face", "house")])
    cells = plan_cells(ResultsFolder(tmp_path), samples, tasks, [METHODS["gamp-bg-lr"]], "")
    regions = open_atlas(str(atlas)).regions(samples.mask_img)
    moved = replace(regions, of_voxel=np.roll(regions.of_voxel, 1))

    def planned(each, by_region=True):
        settings = StudySettings(by_region=by_region)
        study = SimpleNamespace(
            settings=settings, samples=samples, steps=Unchanged(), cells=cells, output=Output(tmp_path),
            subject=SimpleNamespace(regions=each), blocks=blocks_of(samples),
        )  # fmt: skip
        return [job.fingerprint for each in ByRegion.of(study).jobs for job in each.jobs]

    prints = [planned(each) for each in (regions, regions, moved)]
    assert prints[0] == prints[1] != prints[2] and len(prints[0]) == 1
    assert planned(regions, by_region=False) == []


# --- real volumes


def test_parcels_of_the_real_slice(haxby_slice, real_data):
    """A grid of parcels: what is known of face and house lies in a few of them; sums are the whole."""
    from mvpa_gamp.decoding import cross_validate
    from mvpa_gamp.results.regions import region_rows

    mask = nibabel.load(real_data / "haxby_slice" / "mask.nii.gz")
    i, j, _ = np.indices(mask.shape[:3])
    parcels = nibabel.Nifti1Image((1 + i // 8 + 5 * (j // 7)).astype(np.int16), mask.affine)
    regions = open_atlas(parcels).regions(mask)
    (task,) = make_tasks(haxby_slice.conditions, [("face", "house")])
    X, runs = haxby_slice.X[task.rows], haxby_slice.runs[task.rows]
    method = METHODS["gamp-bg-lr"]
    refit = cross_validate(method, X, task.y, runs).refit
    *rows, outside, whole = region_rows(regions, refit.coef[:, 0], refit.inclusion[:, 0], refit.support[:, 0])
    for column in SUMS:
        assert sum(row[column] for row in (*rows, outside)) == whole[column]
    assert outside["voxels"] == 0 and whole["voxels"] == 530 and whole["selected_voxels"] > 0
    first = max(range(len(rows)), key=lambda k: rows[k]["summed_inclusion"])
    found = decode_regions(method, X, task.y, runs, [regions.voxels(first)])
    assert found.accuracy[0] > 0.75


def test_without_each_region_stands_beside_it(tiny, atlas, tmp_path):
    """A virtual lesion: columns of the table, page and methods text; alone as without the option."""
    out = tmp_path / "out"
    more = ("--methods", "gamp-bg-lr", "--by-region", "--without-region", "--permutations", "2")
    assert main(options(tiny, atlas, out, *more)) == 0
    rows = rows_of(out, "gampBgLr")
    tested = [row for row in rows if row["accuracy_percent"] != MISSING and row["index"] != MISSING]
    assert tested and all(0 <= number(row["accuracy_without_percent"]) <= 100 for row in tested)
    assert all(number(row["p_value_without_fwe"]) >= number(row["p_value_without"]) for row in tested)
    page = (out / "index.html").read_text()
    assert "Without it %" in page and "without each of these regions were decoded as well" in page
