"""The page: self-contained, true to summary.tsv, answers first, and links only to files that are there."""

import base64
import hashlib
import json
import re
import shutil
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from mvpa_gamp.haxby import main
from mvpa_gamp.report.answers import entries, sentence
from mvpa_gamp.report.facts import comparison_facts
from mvpa_gamp.report.terminal import MEASURES, show
from mvpa_gamp.results.files import number, read_tsv
from mvpa_gamp.results.reader import read_results
from mvpa_gamp.results.tables import selects


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
    several = len({row["comparison"] for row in rows}) > 2  # one comparison has no average row
    rows = [row for row in rows if several or row["comparison"] != "average"]
    assert set(shown) == {row["comparison"] for row in rows}
    for row in rows:
        for m, measure in enumerate(MEASURES):
            text, exact = shown[row["comparison"]][m * len(methods) + methods.index(row["method"])]
            accuracy = f"{100 - number(row['error_percent']):.6g}"
            known = {"accuracy_percent": accuracy, "seconds": seconds[row["comparison"], row["method"]]}
            true = {**row, **known}[measure.column]
            assert number(exact) == pytest.approx(number(true), rel=1e-5)
            means = {**row, "folds_selecting": number(row["folds_selecting"]), "folds": number(row["folds"])}
            means["consistency_percent"] = number(row["consistency_percent"])
            dash = measure.column == "consistency_percent" and not selects(means)
            assert text == ("–" if dash else show(measure, number(exact)))


def test_the_page_needs_nothing_from_outside(finished):
    html = (finished / "index.html").read_text()
    (script,) = re.findall(r"<script>(.*?)</script>", html, flags=re.S)
    assert html.count("<script") == 1
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert policy.startswith("default-src 'none'; ") and f"script-src 'sha256-{digest}'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1] and "http" not in policy
    links = re.findall(r'(?:src|href)="([^"]{0,200})', html)
    assert links
    assert not [link for link in links if "//" in link and not link.startswith("data:")]
    assert not re.search(r"url\(|@import", html)


def files_linked(page):
    """The files that a page links to, and the anchors."""
    html = page.read_text(encoding="utf-8")
    found = [unquote(unescape(link)) for link in re.findall(r'href="([^"]+)"', html)]
    anchors = set(re.findall(r' id="([^"]+)"', html))
    assert not [link for link in found if link.startswith("#") and link[1:] not in anchors]
    return {page.parent / link for link in found if not link.startswith(("#", "data:"))}


def test_every_link_leads_to_a_file(finished, phantom_results):
    for results in (finished, phantom_results):
        linked = files_linked(results / "index.html")
        assert not [path for path in linked if not path.is_file()]
        names = " ".join(path.name for path in linked)
        assert "Selected_mask.nii.gz" in names and "Selected_stat-weight" in names and "_maps.svg" in names


def test_the_first_thing_said_is_the_answer(phantom_results):
    """How accurate, against which chance, how sure, where, how stable, which file: before anything else."""
    html = (phantom_results / "index.html").read_text()
    top = re.sub(r"<[^>]+>", " ", html[html.index("<main") : html.index('id="methods-compared"')])
    text, results = " ".join(unescape(top).split()), read_results(phantom_results)
    facts = comparison_facts(results, "phantom", results.tasks[0])
    row = results.row("phantom", "faceMinusHouse", facts.method)
    assert (facts.score.mean, facts.score.chance) == (row["accuracy_percent"], row["chance_percent"])
    assert facts.stability.shared == row["consistency_percent"] and facts.selected.per_fold == row["voxels"]
    assert sentence(facts) in text and facts.files.first.name in text
    for entry in entries(facts):
        assert f"{entry.question} {entry.said}" in text


def test_a_folder_of_another_version_is_one_sentence(finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "older")
    study = json.loads((copy / "summary.json").read_text())
    (copy / "summary.json").write_text(json.dumps({**study, "version": "0.0.1"}))
    (copy / "logs" / "manifest.tsv").unlink()
    assert main(["--reports-only", "--out", str(copy), "--quiet"]) == 2
    assert "was written by mvpa_gamp 0.0.1" in capsys.readouterr().err


def test_the_numbers_of_the_page_are_those_of_the_tables(finished, phantom_results):
    for results in (finished, phantom_results):
        check_numbers((results / "index.html").read_text(), results)


def test_the_page_says_what_it_must(finished):
    html = (finished / "index.html").read_text()
    for text in (
        "Ziniel J, Schniter P, Sederberg P (2015)",
        "A weight is not activation",
        "Any two folds share most of their",
        "Neurological convention: the left hemisphere is on the left",
        "python -m mvpa_gamp.haxby --config config.toml",
        "closed form",
        "seed = 0",
        "Nogueira",
    ):
        assert text in html
