from mvpa_gamp.report.cobidas import cobidas_rows
from mvpa_gamp.results.files import read_tsv
from mvpa_gamp.results.reader import read_results


def test_the_items_are_filled_in_from_the_run(finished):
    rows = {row["item"]: row for row in read_tsv(finished / "cobidas_multivariate.tsv")}
    assert rows["Features, and how they were chosen"]["reported"].startswith("60 voxels")
    assert "leaves one run out" in rows["How training and test data were separated"]["reported"]
    assert "Folds: 4" in rows["How training and test data were separated"]["reported"]
    assert rows["How performance was tested"]["reported"] == "Not tested."
    assert "face vs house: " in rows["Performance found"]["reported"]
    assert "(chance 50 %" in rows["Performance found"]["reported"]
    assert {row["from_the_run"] for row in rows.values()} == {"yes", "no"}
    for row in rows.values():
        assert (row["from_the_run"] == "no") == row["reported"].startswith("To be added by the authors.")


def test_they_are_on_the_page_with_their_source(finished):
    page = (finished / "index.html").read_text()
    assert 'id="cobidas"' in page and "doi:10.1038/nn.4500" in page


def test_what_a_phantom_reports_says_so(phantom_results):
    rows = cobidas_rows(read_results(phantom_results))
    assert all(row["reported"].startswith("PHANTOM") for row in rows if row["from_the_run"] == "yes")
