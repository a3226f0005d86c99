"""The page: self-contained, true to summary.tsv, and clean in a real browser with the network off."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from mvpa_gamp.report.printed import MEASURES, show
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.tables import selects

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here (Debian: apt install chromium)"
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--dump-dom",
)  # fmt: skip
LOOK = """<script>
addEventListener("load", () => {
  const images = [...document.images];
  const broken = images.filter(image => !image.complete || image.naturalWidth === 0);
  document.body.insertAdjacentHTML("beforeend", `<p id="seen">${images.length} ${broken.length}</p>`);
});
</script></body>"""


def browse(page, tmp_path):
    """The page's DOM after loading, and what the browser logged."""
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


class Cells(HTMLParser):
    """The rows of every table: (text of the first cell, exact values of the numbers, their texts)."""

    def __init__(self):
        super().__init__()
        self.tables, self.kind, self.inside = {}, None, False

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "table":
            self.kind = attrs.get("class")
            self.tables[self.kind] = []
        elif tag == "tr" and self.kind is not None:
            self.tables[self.kind].append([])
        elif tag in ("td", "th") and self.kind is not None:
            self.tables[self.kind][-1].append(["", None])
            self.inside = True
        elif tag == "data" and self.kind is not None:
            self.tables[self.kind][-1][-1][1] = attrs["value"]

    def handle_endtag(self, tag):
        if tag == "table":
            self.kind = None
        elif tag in ("td", "th"):
            self.inside = False

    def handle_data(self, data):
        if self.kind is not None and self.inside:
            self.tables[self.kind][-1][-1][0] += data


def check_numbers(html, results):
    """The paper's table and the full table of the page against summary.tsv and timings.tsv."""
    cells = Cells()
    cells.feed(html)
    rows = read_tsv(results / "summary.tsv")
    seconds = {(r["comparison"], r["method"]): r["seconds"] for r in read_tsv(results / "timings.tsv")}
    methods = list(dict.fromkeys(row["method"] for row in rows))
    shown = {line[0][0]: line[1:] for line in cells.tables["paper"][2:]}
    assert set(shown) == {row["comparison"] for row in rows}
    for row in rows:
        for m, measure in enumerate(MEASURES):
            text, exact = shown[row["comparison"]][m * len(methods) + methods.index(row["method"])]
            true = {**row, "seconds": seconds[row["comparison"], row["method"]]}[measure.column]
            assert exact == true
            means = {**row, "folds_selecting": number(row["folds_selecting"]), "folds": number(row["folds"])}
            means["consistency_percent"] = number(row["consistency_percent"])
            dash = measure.column == "consistency_percent" and not selects(means)
            assert text == ("–" if dash else show(measure, number(true)))
    full = [[text for text, _ in line] for line in cells.tables["summary"][1:]]
    assert full == [list(row.values()) for row in rows]


def test_the_page_needs_nothing_from_outside(finished):
    html = (finished / "index.html").read_text()
    assert "<script" not in html
    links = re.findall(r'(?:src|href)="([^"]{0,30})', html)
    assert links
    assert all(link.startswith(("data:", "#")) for link in links)
    assert not re.search(r"url\(|@import", html)


def test_the_numbers_of_the_page_are_those_of_the_tables(finished, phantom_results):
    for results in (finished, phantom_results):
        check_numbers((results / "index.html").read_text(), results)


def test_the_page_says_what_it_must(finished):
    html = (finished / "index.html").read_text()
    for text in (
        "Ziniel J, Schniter P, Sederberg P (2015)",
        "A weight is not activation",
        "folds share training data",
        "python -m mvpa_gamp.haxby --config config.toml",
        "closed form",
        "seed = 0",
        "Nogueira",
    ):
        assert text in html


@needs_chromium
def test_the_browser_would_complain_about_a_request_or_an_error(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text('<body><img src="https://example.org/x.png"><script>nothing.here()</script></body>')
    assert len(browse(page, tmp_path)[1]) >= 1


@needs_chromium
@pytest.mark.parametrize("which", ["finished", "phantom_results"])
def test_a_browser_shows_the_page_without_complaint(which, request, tmp_path):
    results = request.getfixturevalue(which)
    html, complaints = browse(results / "index.html", tmp_path)
    assert not complaints
    check_numbers(html, results)
    watched = tmp_path / "watched.html"
    page = (results / "index.html").read_text()
    page = re.sub(
        r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page
    )  # it forbids the watcher's script
    watched.write_text(page.replace("</body>", LOOK))
    html, complaints = browse(watched, tmp_path)
    assert not complaints
    images, broken = map(int, re.search(r'<p id="seen">(\d+) (\d+)</p>', html).groups())
    assert images == len(list((results / "figures").iterdir()))
    assert broken == 0
