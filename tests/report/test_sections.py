"""What captions and tables say about the numbers below them."""

import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mvpa_gamp.report.figures.nulls import null_edges
from mvpa_gamp.report.methods_text import methods_paragraphs
from mvpa_gamp.report.page import render, section
from mvpa_gamp.results.files import read_tsv, write_tsv
from mvpa_gamp.results.reader import Results, read_results


@pytest.mark.parametrize(("kind", "words"), [("block", "in whole blocks"), ("sample", "sample by sample")])
def test_the_methods_text_says_what_was_exchanged(finished, kind, words):
    class Permuted(Results):
        def inference_rows(self):
            told = {"status": "ok", "exchanged": kind, "permutations": "9", "labellings": "99"}
            return [{**told, "p_value": "0.1", "smallest_p_value": "0.1"}]

    read = read_results(finished)
    summary = replace(read.summary, inference={"permutations": 9})
    results = Permuted(read.folder, summary, read.rows, read.texts)
    assert f"exchanged {words} within runs" in " ".join(methods_paragraphs(results))


def test_an_interval_of_an_index_of_at_most_one_ends_at_one(finished, tmp_path):
    results = read_results(shutil.copytree(finished, tmp_path / "results"))
    path = results.folder.subject_table(results.subjects[0], "consistency")
    rows = [{**row, "nogueira_low": "0.96", "nogueira_high": "1.02"} for row in read_tsv(path)]
    write_tsv(path, list(rows[0]), rows)
    page = section(results, "consistency")
    assert "0.96 to 1.00" in page and "1.02" not in page


def test_a_whitened_page_says_so_at_its_top(finished):
    read = read_results(finished)
    processing = {**read.summary.processing, "whiten": True}
    whitened = replace(read, summary=replace(read.summary, processing=processing))
    for results, said in ((read, False), (whitened, True)):
        assert ("<strong>Noise whitened.</strong>" in render(results)) == said


@pytest.mark.parametrize(("samples", "permutations"), [(216, 1000), (864, 200), (40, 2000), (8, 500)])
def test_bins_of_permuted_accuracies_hold_the_same_number_of_possible_values(samples, permutations):
    rng = np.random.default_rng(samples)
    right = rng.binomial(samples, 0.5, permutations)
    null = np.array([float(f"{100 * share:.6g}") for share in right / samples])  # as tables keep them
    edges = null_edges(null)
    possible = 100 * np.arange(samples + 1) / samples
    inside = [np.sum((possible > low) & (possible < high)) for low, high in pairwise(edges)]
    assert set(inside[1:-1]) == {max(1, inside[len(inside) // 2])}
    assert np.histogram(null, edges)[0].sum() == permutations
    assert len(inside) <= 2 + 2 * permutations ** (1 / 3)


@pytest.mark.parametrize("share", [k / n for n in (16, 24, 36, 108) for k in range(n + 1)])
def test_a_single_permutation_has_a_bin(share):
    edges = null_edges(np.array([float(f"{100 * share:.6g}")]))
    assert len(edges) >= 2 and edges[0] <= 100 * share <= edges[-1] and (np.diff(edges) > 0).all()


@pytest.mark.parametrize("null", [np.full(20, 50.0), np.random.default_rng(1).normal(50, 5, 300)])
def test_bins_of_one_value_and_of_any_values(null):
    counts, edges = np.histogram(null, null_edges(null))
    assert counts.sum() == null.size and (np.diff(edges) > 0).all()
