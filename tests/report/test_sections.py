"""What captions and tables say about the numbers below them."""

import shutil

import pytest

from mvpa_gamp.report.methods_text import methods_paragraphs
from mvpa_gamp.report.page import render
from mvpa_gamp.report.sections import consistency_section
from mvpa_gamp.results.files import read_tsv, write_tsv
from mvpa_gamp.results.reader import Results, read_results


@pytest.mark.parametrize(("kind", "words"), [("block", "in whole blocks"), ("sample", "sample by sample")])
def test_the_methods_text_says_what_was_exchanged(finished, kind, words):
    class Permuted(Results):
        def inference_rows(self):
            return [{"status": "ok", "exchanged": kind}]

    read = read_results(finished)
    study = {**read.study, "inference": {"permutations": 9}}
    results = Permuted(read.folder, study, read.rows, read.texts)
    assert f"exchanged {words} within runs" in " ".join(methods_paragraphs(results))


def test_an_interval_of_an_index_of_at_most_one_ends_at_one(finished, tmp_path):
    results = read_results(shutil.copytree(finished, tmp_path / "results"))
    path = results.folder.subject_table(results.subjects[0], "consistency")
    rows = [{**row, "nogueira_low": "0.96", "nogueira_high": "1.02"} for row in read_tsv(path)]
    write_tsv(path, list(rows[0]), rows)
    page = consistency_section(results)
    assert "0.96 to 1.00" in page and "1.02" not in page


def test_a_whitened_page_says_so_at_its_top(finished):
    read = read_results(finished)
    study = {**read.study, "processing": {**read.study["processing"], "whiten": True}}
    whitened = Results(read.folder, study, read.rows, read.texts)
    for results, said in ((read, False), (whitened, True)):
        assert ("<strong>Noise whitened.</strong>" in render(results)) == said
