"""The page in a real browser, opened from disk without a network: what a reader does with it works."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from mvpa_gamp.haxby import main

EVIL = (
    "<img/src=x/onerror=document.title='bad1'>",
    "'><script>document.title='bad2'</script>",
    "</details>'&amp;3",
)
EVIL_FILE = "<img src=x onerror=document.title='bad4'>.nii.gz"
READY = """(async () => {
  const wait = () => new Promise(done => setTimeout(done, 20));
  document.querySelectorAll("details").forEach(part => { part.open = true; });
  document.querySelectorAll("img").forEach(image => { image.loading = "eager"; });
  for (let i = 0; i < 1000; i++) {
    const viewers = [...document.querySelectorAll("figure.viewer")];
    const texts = viewers.map(each => each.querySelector(".readout")?.textContent);
    if (texts.length && texts.every(Boolean) && [...document.images].every(image => image.complete)) break;
    await wait();
  }
  return [document.images.length, [...document.images].filter(image => !image.naturalWidth).length];
})()"""
VIEWER = """(() => {
  const viewer = document.querySelector("figure.viewer"), canvas = viewer.querySelector("canvas[tabindex]");
  const slider = viewer.querySelector("input"), level = viewer.querySelector("output");
  return [0, 60, 100].map(value => {
    slider.value = value;
    slider.dispatchEvent(new Event("input"));
    return [Number(level.textContent.match(/: ([\\d,]+) voxel/)[1].replace(",", "")), canvas.toDataURL()];
  });
})()"""
MAPS = """(async () => {
  const viewer = document.querySelector("figure.viewer"), menu = viewer.querySelector("select");
  const said = [];
  for (const option of menu.options) {
    menu.value = option.value;
    menu.dispatchEvent(new Event("change"));
    const readout = viewer.querySelector(".readout"), shown = () => readout.textContent.includes(option.text);
    for (let i = 0; i < 500 && !shown(); i++)
      await new Promise(done => setTimeout(done, 20));
    said.push(viewer.querySelector(".readout").textContent);
  }
  return said;
})()"""
SORT = """(() => {
  const table = document.querySelector("table.sortable"), heading = table.tHead.rows[0].cells[1];
  return [0, 1].map(() => {
    heading.querySelector("button").click();
    const values = [...table.tBodies[0].rows].map(row => Number(row.cells[1].querySelector("data").value));
    return [heading.getAttribute("aria-sort"), values];
  });
})()"""
UNREACHED = """
[...document.querySelectorAll("a[href], button, input, select, summary, canvas[role], .scroll")]
  .filter(element => element.offsetParent !== null && (element.focus(), document.activeElement !== element))
  .map(element => element.outerHTML.slice(0, 90))"""
UNNAMED = """[...document.querySelectorAll("button, input, select, canvas[role], .scroll")].filter(element =>
  !(element.textContent.trim() || element.getAttribute("aria-label") || element.labels?.length))
  .map(element => element.outerHTML.slice(0, 90))"""


SIDEWAYS = """[...document.querySelectorAll(".scroll, pre, main")]
  .filter(each => each.scrollWidth > each.clientWidth + 1)
  .map(each => `${each.textContent.trim().slice(0, 60)}: ${each.scrollWidth} of ${each.clientWidth}`)"""
ELSEWHERE = """[...document.querySelectorAll("a[href^='#']")].map(link => link.hash.slice(1))
  .filter(id => !document.getElementById(decodeURIComponent(id)))"""


def lost(page):
    """Links, as the browser understands them, that lead to no file."""
    links = page.run("""[...document.querySelectorAll("a[href]:not([href^='#'])")].map(link => link.href)""")
    assert links and all(link.startswith("file:") for link in links)
    return [link for link in links if not Path(unquote(urlsplit(link).path)).is_file()]


@pytest.fixture(scope="module")
def evil(make_tiny, tmp_path_factory):
    """A study whose categories are named like attacks, in pairs and together."""
    place = tmp_path_factory.mktemp("evil")
    tiny, out = make_tiny(place / "data", categories=EVIL), place / "results"
    tiny = replace(tiny, bold=tiny.bold.rename(tiny.bold.with_name(EVIL_FILE)))
    assert main(tiny.options(out, "--multiclass", "--pairs", "all", "--quiet")) == 0
    assert EVIL_FILE.replace("<", "&lt;")[:12] in (out / "index.html").read_text()  # it is on the page
    return out


@pytest.mark.parametrize("which", ["finished", "phantom_results", "evil"])
def test_the_page_works_without_a_network(which, request, browser):
    page = browser.open(request.getfixturevalue(which) / "index.html")
    title = page.run("document.title")
    many = page.run("document.querySelectorAll('details.block').length") > 1
    assert page.run("document.documentElement.scrollHeight") < (6000 if many else 4500)
    started = page.run("document.querySelectorAll('figure.viewer[data-started]').length")
    assert started == 1  # viewers start when they are opened; the first of a few is
    images, broken = page.run(READY)
    assert images and not broken
    levels = page.run(VIEWER)
    voxels = [count for count, _ in levels]
    assert voxels == sorted(voxels, reverse=True) and voxels[0] > voxels[2] >= 1
    assert len({drawn for _, drawn in levels}) >= 2
    maps = page.run(MAPS)
    assert len(set(maps)) == len(maps) >= 3
    for said, values in page.run(SORT):
        assert values == sorted(values, reverse=said == "descending")
    assert page.run("document.querySelectorAll('table.sortable th[aria-sort=ascending]').length") == 1
    assert page.run(UNREACHED) == [] and page.run(UNNAMED) == []
    attributes = "[...document.querySelectorAll('*')].flatMap(each => each.getAttributeNames())"
    assert page.run(f"{attributes}.filter(name => name.startsWith('on'))") == []
    assert page.run("document.scripts.length") == 1
    assert page.run(ELSEWHERE) == [] and lost(page) == []
    assert page.run("document.title") == title and "mvpa_gamp" in title
    assert page.requests == [] and page.complaints == []


def test_the_keyboard_alone_opens_a_comparison_and_moves_in_the_brain(finished, browser):
    page = browser.open(finished / "index.html")
    tag = "document.activeElement.tagName + ' ' + document.activeElement.textContent"
    walked = []
    for _ in range(150):
        page.press("Tab")
        walked.append(page.run(tag))
        if walked[-1].startswith("SUMMARY") and "vs" in walked[-1]:
            break
    assert walked[0].startswith("A To the results")  # past the navigation
    assert any(each.startswith("A ") and "vs" in each for each in walked)
    page.press("Enter")
    opened = "!document.querySelector('details.block').open"
    assert page.run(opened)  # the first of a few is open: a key closes it, and opens it again
    page.press("Enter")
    assert not page.run(opened)
    page.run(READY)
    page.run("document.querySelector('figure.viewer canvas[tabindex]').focus()")
    readout = "document.querySelector('figure.viewer .readout').textContent"
    places = [page.run(readout)]
    for key in ("ArrowRight", "PageUp"):
        page.press(key)
        places.append(page.run(readout))
    assert len(set(places)) == 3


def test_a_link_opens_what_it_leads_to_and_text_can_be_copied(finished, browser):
    page = browser.open(finished / "index.html")
    opened = "[...document.querySelectorAll('details.block')].map(part => part.open)"
    assert page.run(opened) == [True, False, False]  # of a few comparisons the first one
    page.run("document.querySelectorAll('table.matrix td a')[1].click()")
    assert page.run(f"new Promise(done => setTimeout(() => done({opened}), 300))") == [True, True, False]
    page.run("document.querySelector('#methods > details').open = true")
    copied = """new Promise(done => {
      const button = document.querySelector('#methods button.copy');
      new MutationObserver(() => done(button.textContent)).observe(button, { childList: true });
      button.click();
    })"""
    assert page.run(copied) == "Copied"


@pytest.mark.parametrize("width", [390, 768])
def test_a_narrow_screen_needs_no_scrolling_sideways(finished, browser, width):
    page = browser.open(finished / "index.html")
    asked = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.ask("Emulation.setDeviceMetricsOverride", page.session, **asked)
    page.run(READY)
    assert page.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("which", ["finished", "phantom_results", "evil"])
def test_no_table_of_a_desktop_screen_scrolls_sideways(which, request, browser):
    page = browser.open(request.getfixturevalue(which) / "index.html")
    asked = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.ask("Emulation.setDeviceMetricsOverride", page.session, **asked)
    page.run(READY)
    assert page.run("document.querySelectorAll('.scroll, pre').length") >= 5
    assert page.run(SIDEWAYS) == [] and page.run("document.documentElement.scrollWidth") <= 1280


def test_the_viewer_starts_with_the_map_that_the_answer_names(phantom_results, browser):
    page = browser.open(phantom_results / "index.html")
    page.run(READY)
    name = page.run("document.querySelector('.answer .map').textContent")
    assert "_stat-pip_" in name
    assert page.run("document.querySelector('figure.viewer select').selectedOptions[0].text") == (
        "inclusion probability"
    )
    help_words = "document.querySelector('figure.viewer figcaption').textContent"
    assert "Probability that the classifier needs a voxel" in page.run(help_words)
    page.run(MAPS)  # the last one is the weight
    assert "Orange to red: counts in favour of face" in page.run(help_words)


def test_a_request_and_an_error_would_be_seen(browser, tmp_path):
    path = tmp_path / "bad.html"
    path.write_text('<body><img src="https://example.org/x.png"><script>nothing.here()</script></body>')
    page = browser.open(path)
    assert page.requests == ["https://example.org/x.png"]
    assert any("nothing is not defined" in said for said in page.complaints)


def test_the_policy_stops_a_script_that_got_into_the_page(finished, browser, tmp_path):
    html = (finished / "index.html").read_text(encoding="utf-8")
    path = tmp_path / "broken.html"
    added = "<script>document.title = 'bad'</script><img src='https://example.org/x.png'></main>"
    path.write_text(html.replace("</main>", added), encoding="utf-8")
    page = browser.open(path)
    assert page.run("document.title") != "bad"
    assert len(page.complaints) >= 2
