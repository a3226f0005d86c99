"""--lag-trs A..B: accuracy over lags, p-values corrected for having tried several, bad input."""

import csv

import numpy as np
import pytest

from mvpa_gamp.haxby import main
from mvpa_gamp.study import lag_curve


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def test_a_range_of_lags_is_a_curve_with_a_page(tiny, tmp_path, capsys):
    out = tmp_path / "lags"
    asked = ["--pairs", "face:house", "--methods", "lda", "--lag-trs", "0..2", "--permutations", "9"]
    assert main(tiny.options(out, *asked)) == 0
    rows = rows_of(out / "lags.tsv")
    assert [row["lag_trs"] for row in rows] == ["0", "1", "2"]
    assert all(float(row["p_value_all_lags"]) >= float(row["p_value"]) >= 0.1 for row in rows)
    page = (out / "index.html").read_text()
    assert "Accuracy over time after onset" in page and "corrected for all lags" in page
    assert "lag 2: " in capsys.readouterr().out
    one = tmp_path / "one"
    assert main(tiny.options(one, *asked[:4], "--lag-trs", "1", "--quiet")) == 0  # as a study of that lag
    (row, *_) = rows_of(one / "summary.tsv")
    assert 100 * float(rows[1]["accuracy"]) == pytest.approx(100 - float(row["error_percent"]), abs=1e-3)


@pytest.mark.parametrize("same_blocks", [True, False])
def test_p_values_of_nothing_are_valid_for_the_best_of_all_lags(same_blocks):
    """500 sets of five correlated accuracies: the smallest corrected p is at most 0.05 in 5 % of them."""
    rng, smallest = np.random.default_rng(0), []
    for _ in range(500):
        draws = rng.standard_normal((1 + 19, 1)) + rng.standard_normal((1 + 19, 5))  # observed first
        found = lag_curve.corrected(list(draws[0]), [draws[1:, k] for k in range(5)], same_blocks)
        smallest.append(min(found))
    share = np.mean(np.array(smallest) <= 0.05)
    assert share <= 0.08 and (share >= 0.03 or not same_blocks)


BAD = {
    "--lag-trs 8..0": "--lag-trs: expected a number of volumes, or a range such as 0..8",
    "--lag-trs 1..x": "got '1..x'",
    "--lag-trs 0..3 --fdr 0.05": "--fdr does not go with a range of --lag-trs",
    "--lag-trs 0..3 --methods loud": "--methods: expected some of",
    "--lag-trs 0..3 --pairs face:cow": "cow",
}


@pytest.mark.parametrize("options", BAD)
def test_bad_ranges_are_one_sentence_and_write_nothing(options, tiny, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(tiny.options(out, "--methods", "lda", *options.split())) == 2
    said = capsys.readouterr().err
    assert BAD[options] in said and said.count("error:") == 1 and not out.exists()
