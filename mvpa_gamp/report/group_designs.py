"""All methods on all classes together and on crosses, behind the answers of a group's page."""

from mvpa_gamp.imaging.atomic_files import write_atomic
from mvpa_gamp.report.group_design_answers import answering_designs, class_maps
from mvpa_gamp.report.group_figures import accuracy_figure
from mvpa_gamp.report.group_maps import draw_class_maps
from mvpa_gamp.report.group_results import Group
from mvpa_gamp.report.group_sections import DOTS, line, participant_table, student_table
from mvpa_gamp.report.group_words import DESIGN, DESIGN_CAPTION, design_names
from mvpa_gamp.report.markup import figure, folded, headings, table, text

_FIGURE = "group_designs.svg"


def draw_designs(group: Group) -> None:
    """The figure of classes and crosses."""
    if not group.designs:
        return
    used = {row["method"] for row in group.designs}
    methods = {name: label for name, label in group.study["methods"].items() if name in used}
    names = design_names(group.designs)
    drawn = accuracy_figure(group.designs, group.design_accuracy, methods, names, group.banner)
    write_atomic(group.folder.figure(_FIGURE), drawn)
    lead = next((row["method"] for row in answering_designs(group) if row["design"] == "classes"), None)
    if lead is not None:
        draw_class_maps(group, class_maps(group, lead))


def designs_section(group: Group) -> str:
    """All classes together and cross-decoding, where there is any."""
    if not group.designs:
        return ""
    drawn = figure(group.folder.figure(_FIGURE), text(DOTS), "Accuracy of participants")
    body = [
        line(group.study, row, list(DESIGN), {"accuracy": row["accuracy_percent"]}) for row in group.designs
    ]
    heads = headings(("Design", "Method", *DESIGN.values()), 2)
    parts = drawn + table([heads], body, text(DESIGN_CAPTION), "sortable compact")
    each = participant_table(group.study, group.design_accuracy, "permutation of labels within runs")
    said = "Accuracy of every method and participant."
    title = "Classes and crosses: how the methods compare"
    return folded("designs", title, said, parts, student_table(group.study, group.designs), each)
