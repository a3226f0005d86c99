"""The viewer of maps on meshes: what is in the page, and in a browser that it turns, offline."""

import base64
import json
import re

import numpy as np
import pytest
from surface_data import planted, small_mesh, sphere

from mvpa_gamp import GAMPDecoder
from mvpa_gamp.imaging.surface_files import stored_cortex
from mvpa_gamp.report import backdrops
from mvpa_gamp.report.facts import comparison_facts
from mvpa_gamp.report.figures.surface import vertex_edges
from mvpa_gamp.report.page import section
from mvpa_gamp.report.viewer import viewer
from mvpa_gamp.results.reader import read_results

READY = """(async () => {
  document.querySelectorAll("details").forEach(part => { part.open = true; });
  for (let i = 0; i < 1000 && !document.querySelector("figure.viewer .readout")?.textContent; i++)
    await new Promise(done => setTimeout(done, 20));
  const viewer = document.querySelector("figure.viewer");
  return [viewer.querySelector(".readout").textContent, viewer.querySelector(".controls output").textContent];
})()"""
PICTURE = "document.querySelector('figure.viewer canvas.mesh').toDataURL()"
CHOOSE = """((name, value) => {
  const labels = [...document.querySelectorAll("figure.viewer label")];
  const control = labels.find(each => each.textContent.startsWith(name)).querySelector("select, input");
  control.value = value;
  control.dispatchEvent(new Event(control.tagName === "SELECT" ? "change" : "input"));
})"""
DRAG = """(() => {
  const canvas = document.querySelector("figure.viewer canvas.mesh");
  canvas.setPointerCapture = () => {};
  const box = canvas.getBoundingClientRect(), at = (type, x) => canvas.dispatchEvent(
    new PointerEvent(type, { clientX: box.left + x, clientY: box.top + box.height / 2, pointerId: 1 }));
  at("pointerdown", 300); at("pointermove", 380); at("pointerup", 380);
})()"""
CLICK = DRAG.replace('at("pointermove", 380); at("pointerup", 380)', 'at("pointerup", 300)').replace(
    "300", "box.width * 0.3"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out, data = tmp_path_factory.mktemp("mesh") / "out", planted(small_mesh())
    decoder = GAMPDecoder("gamp-sbg-lr", ignore="rest").fit(data.image, data.y, groups=data.runs)
    decoder.to_bids(out)
    decoder.generate_report().save_as_html(out / "index.html")
    return out


def view_of(results):
    task = results.tasks[0]
    return json.loads(viewer(results, results.subjects[0], task, facts_of(results))["data"])


def facts_of(results):
    return comparison_facts(results, results.subjects[0], results.tasks[0])


def array_of(html, name, kind):
    (coded,) = re.findall(f'data-{name}="([^"]*)"', html)
    return np.frombuffer(base64.b64decode(coded), kind).reshape(-1, 3)


def test_the_page_has_the_meshes_once_and_bytes_of_every_map(folder):
    results = read_results(folder)
    page = (folder / "index.html").read_text()
    assert page.count('class="viewer"') == page.count("data-points=") == 1
    view, cortex = view_of(results), stored_cortex(results.folder.mask(results.subjects[0]).parent)
    assert view["shape"][0] * view["shape"][1] >= 240 and view["first"] in ("left", "right")
    assert {"weight", "inclusion probability"} <= {each["name"] for each in view["maps"]}
    ground = section(results, "grounds")
    corners = array_of(ground, "faces", "<u2")
    right = np.asarray(cortex.mesh.parts["right"].faces) + 130
    np.testing.assert_array_equal(corners[-len(right) :], right)
    points = array_of(ground, "points", "<i2")
    assert points.shape == (240, 3) and np.linalg.norm(points.astype(float), axis=1).max() > 32760
    assert points[:130, 0].max() < points[130:, 0].min()  # hemispheres do not overlap


def test_meshes_that_are_too_fine_stay_in_their_files(folder, monkeypatch):
    monkeypatch.setattr(backdrops, "MOST", 200)
    results = read_results(folder)
    assert viewer(results, results.subjects[0], results.tasks[0], facts_of(results)) is None
    assert "data-points" not in section(results, "grounds")


def test_it_turns_offline_by_mouse_and_keyboard(folder, browser):
    page = browser.open(folder / "index.html")
    readout, level = page.run(READY)
    assert re.fullmatch(r"(left|right) hemisphere, vertex \d+: inclusion probability .*selected", readout)
    assert re.search(r": [\d,]+ vert(ex|ices)$", level)
    seen = [page.run(PICTURE)]
    page.run("document.querySelector('figure.viewer canvas.mesh').focus()")
    page.press("ArrowRight")
    seen.append(page.run(PICTURE))
    page.run(DRAG)
    seen.append(page.run(PICTURE))
    for name, value in (("Hemispheres", "right"), ("From", "top"), ("Threshold", "100"), ("Threshold", "0")):
        page.run(f"{CHOOSE}({name!r}, {value!r})")
        seen.append(page.run(PICTURE))
    assert len(set(seen)) == len(seen)
    page.run(f"{CHOOSE}('Hemispheres', 'both')")
    page.run(CLICK)
    clicked, _ = page.run(READY)
    assert clicked != readout and clicked.startswith("left hemisphere")  # from above the left is on the left
    assert page.requests == [] and page.complaints == []


def test_outlines_run_around_the_vertices_inside():
    """Between a cap of a sphere and the rest: a closed line whose ends meet, halfway between vertices."""
    mesh = sphere(200, 3)
    inside = mesh.coordinates[:, 2] > 20
    lines = vertex_edges(mesh, inside)
    ends, counts = np.unique(lines.reshape(-1, 3).round(4), axis=0, return_counts=True)
    assert len(lines) == len(ends) and (counts == 2).all()
    assert (np.abs(ends[:, 2] - 20) < 15).all()
    assert vertex_edges(mesh, np.zeros(200, bool)).shape == (0, 2, 3)
