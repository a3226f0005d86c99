"""The page of a group: what participants say together; a pure reader of the folder, as report/page.py."""

from collections.abc import Callable
from pathlib import Path

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.imaging.samples import PHANTOM_BANNER
from mvpa_gamp.report.frame import banner, document, header
from mvpa_gamp.report.group_answers import answer_section
from mvpa_gamp.report.group_design_answers import design_answer_section
from mvpa_gamp.report.group_designs import designs_section, draw_designs
from mvpa_gamp.report.group_figures import accuracy_figure
from mvpa_gamp.report.group_maps import draw_group_maps
from mvpa_gamp.report.group_overview import group_overview_section
from mvpa_gamp.report.group_results import Group, read_group
from mvpa_gamp.report.group_sections import (
    accuracy_section,
    differences_section,
    methods_section,
    participants_section,
    prevalence_section,
    references_section,
)
from mvpa_gamp.report.group_viewer import group_grounds
from mvpa_gamp.report.markup import details
from mvpa_gamp.report.surface_figures import worded
from mvpa_gamp.results.files import write_text

# The page from top to bottom, as in report/page.py: functions of the group that return HTML, or "".
SECTIONS: tuple[Callable[[Group], str], ...] = (
    design_answer_section,
    group_overview_section,
    answer_section,
    accuracy_section,
    designs_section,
    prevalence_section,
    differences_section,
    participants_section,
    methods_section,
    references_section,
    group_grounds,
)
_NOTES = 1  # shown at the top; more of them open on a click
_SIMULATED = "At least one participant is simulated; nothing here is a finding about brains."


def build_group_page(root: Path) -> Path:
    """Draw the figures and write ``index.html`` of a folder of participants; returns the page's path."""
    group = read_group(root)
    names = {name: name for name in group.study["comparisons"].values()}
    drawn = accuracy_figure(group.summary, group.accuracy, group.study["methods"], names, group.banner)
    write_atomic(group.folder.figure("group_accuracy.svg"), drawn)
    draw_designs(group)
    draw_group_maps(group)
    parts = [make(group) for make in SECTIONS]
    title = "PHANTOM – mvpa_gamp: group" if group.study["phantom"] else "mvpa_gamp: group"
    page = document(title, _header(group), parts, group.study["version"])
    return write_text(group.folder.page, worded(page, group.folder.group_mask))


def _header(group: Group) -> str:
    """Who is in the group, and what must not be missed."""
    study = group.study
    facts = {
        "participants": len(study["subjects"]),
        "comparisons": len(study["comparisons"]),
        "methods": len(study["methods"]),
        "level of each test": study["alpha"],
    }
    names = ", ".join(f"sub-{subject}" for subject in study["subjects"])
    banners = banner(PHANTOM_BANNER, _SIMULATED) if study["phantom"] else ""
    notes = [banner("Note", note) for note in study["notes"]]
    banners += "".join(notes[:_NOTES]) + (details(f"More notes ({len(notes) - _NOTES})", *notes[_NOTES:])
                                          if len(notes) > _NOTES else "")  # fmt: skip
    return header("Decoding in a group of participants", f"{names}.", banners, facts)
