"""The page in a real browser, its policy in force and the network off: what a reader does with it works."""

import base64
import hashlib
import json
import re
import shutil
import subprocess

import pytest

from mvpa_gamp.haxby import main

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt install chromium)")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--virtual-time-budget=20000",
    "--window-size=1400,1000", "--dump-dom",
)  # fmt: skip
EVIL = (
    "<img/src=x/onerror=document.title='bad1'>",
    '"><script>document.title="bad2"</script>',
    "</details>'&amp;3",
)

# What a reader does, as a script that the copy's policy allows by its hash beside the page's own.
READER = """
const found = {}, wait = ms => new Promise(done => setTimeout(done, ms));
const shown = element => element.offsetParent !== null && getComputedStyle(element).visibility !== "hidden";
const look = async () => {
  found.title = document.title;
  found.height = document.documentElement.scrollHeight;
  found.blocks = document.querySelectorAll("details.block").length;
  found.started = document.querySelectorAll("figure.viewer[data-started]").length;
  const link = document.querySelector("nav ul ul a");
  if (link) { link.click(); await wait(500); found.opened = document.querySelector("details.block").open; }
  document.querySelectorAll("details").forEach(part => { part.open = true; });
  await wait(1500);
  const images = [...document.images];
  images.forEach(image => { image.loading = "eager"; });
  await Promise.all(images.map(image => image.decode().catch(() => 0)));
  found.broken = images.filter(image => !image.complete || !image.naturalWidth).length;
  found.images = images.length;

  const viewer = document.querySelector("figure.viewer"), canvas = viewer.querySelector("canvas[tabindex]");
  const slider = viewer.querySelector("input"), level = viewer.querySelector("output"), say = viewer.querySelector(".readout");
  const seen = () => [level.textContent, canvas.toDataURL().length, say.textContent];
  const levels = [];
  for (const value of [0, 60, 100]) {
    slider.value = value;
    slider.dispatchEvent(new Event("input"));
    levels.push([level.textContent, canvas.toDataURL()]);
  }
  found.levels = levels.map(([text]) => text);
  found.drawn = new Set(levels.map(([, image]) => image)).size;
  const before = say.textContent;
  canvas.focus();
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
  found.moved = [before, say.textContent];
  canvas.click();
  found.clicked = say.textContent;
  const menu = viewer.querySelector("select");
  found.maps = [];
  for (let i = 0; i < menu.options.length; i++) {
    menu.value = i;
    menu.dispatchEvent(new Event("change"));
    await wait(300);
    found.maps.push(say.textContent);
  }

  const table = document.querySelector("table.sortable"), column = () =>
    [...table.tBodies[0].rows].map(row => Number(row.cells[1].querySelector("data").value));
  const heading = table.tHead.rows[0].cells[1];
  heading.querySelector("button").click();
  found.falling = [column(), heading.getAttribute("aria-sort")];
  heading.querySelector("button").click();
  found.rising = [column(), heading.getAttribute("aria-sort")];

  const reachable = "a[href], button, input, select, summary, canvas[role], .scroll";
  found.unreached = [...document.querySelectorAll(reachable)].filter(shown).filter(element => {
    element.focus();
    return document.activeElement !== element || element.tabIndex < 0;
  }).map(element => element.outerHTML.slice(0, 80));
  found.unnamed = [...document.querySelectorAll("button, input, select, canvas[role]")].filter(element =>
    !(element.textContent.trim() || element.getAttribute("aria-label") || (element.labels && element.labels.length)))
    .map(element => element.outerHTML.slice(0, 80));
  document.querySelector("button.copy").click();
  await wait(200);
  found.copied = document.querySelector("button.copy").textContent;
  found.handlers = [...document.querySelectorAll("*")].filter(element =>
    [...element.attributes].some(attribute => attribute.name.startsWith("on"))).length;
  found.scripts = document.scripts.length;
  found.requests = performance.getEntriesByType("resource").map(entry => entry.name).filter(name => !name.startsWith("data:"));
  found.after = document.title;
};
addEventListener("load", () => look().catch(error => { found.error = String(error.stack); }).then(() => {
  const said = document.createElement("pre");
  said.id = "found";
  said.textContent = JSON.stringify(found);
  document.body.append(said);
}));
"""


def browse(page, folder):
    """The page's DOM after a reader was there, and what the browser complained about."""
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def read_page(results, folder):
    """What a reader of a copy of the page finds; the copy's policy knows the reader's script, nothing else."""
    html = (results / "index.html").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(READER.encode()).digest()).decode()
    html = html.replace("script-src '", f"script-src 'sha256-{digest}' '", 1)
    copy = folder / "watched.html"
    copy.write_text(html.replace("</body>", f"<script>{READER}</script></body>"), encoding="utf-8")
    dom, complaints = browse(copy, folder)
    found = re.search(r'<pre id="found">(.*?)</pre>', dom, flags=re.S)
    assert found, complaints
    said = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert "error" not in said, said["error"]
    return said, complaints


@pytest.fixture(scope="module")
def evil(make_tiny, tmp_path_factory):
    """A study whose categories are named like attacks."""
    place = tmp_path_factory.mktemp("evil")
    tiny, out = make_tiny(place / "data", categories=EVIL), place / "results"
    assert main(tiny.options(out, "--pairs", "all", "--quiet")) == 0
    return out


@pytest.mark.parametrize("which", ["finished", "phantom_results", "evil"])
def test_a_reader_finds_that_everything_works(which, request, tmp_path):
    found, complaints = read_page(request.getfixturevalue(which), tmp_path)
    assert not complaints
    many = found["blocks"] > 1
    assert found["images"] and not found["broken"] and not found["requests"]
    assert found["started"] == (0 if many else 1) and found["opened"]  # viewers start when they are opened
    assert found["height"] < (6000 if many else 4500)
    voxels = [int(text.split(": ")[1].split()[0].replace(",", "")) for text in found["levels"]]
    assert voxels[0] > voxels[2] >= 1 and voxels == sorted(voxels, reverse=True)
    assert found["drawn"] >= 2
    assert found["moved"][0] != found["moved"][1] and " mm" in found["clicked"]
    assert len(set(found["maps"])) == len(found["maps"]) >= 3
    for name, up in (("falling", False), ("rising", True)):
        values, said = found[name]
        assert values == sorted(values, reverse=not up) and said == ("ascending" if up else "descending")
    assert not found["unreached"] and not found["unnamed"]
    assert found["copied"] == "Copied"
    assert found["handlers"] == 0 and found["scripts"] == 2
    assert found["after"] == found["title"] and "mvpa_gamp" in found["title"]


def test_the_browser_would_complain_about_a_request_or_an_error(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text('<body><img src="https://example.org/x.png"><script>nothing.here()</script></body>')
    assert len(browse(page, tmp_path)[1]) >= 1


def test_the_policy_stops_a_script_that_got_into_the_page(finished, tmp_path):
    html = (finished / "index.html").read_text(encoding="utf-8")
    page = tmp_path / "broken.html"
    page.write_text(
        html.replace("</main>", "<script>document.title = 'bad'</script></main>"), encoding="utf-8"
    )
    dom, complaints = browse(page, tmp_path)
    assert complaints and "<title>bad" not in dom
