"""What goes into a paper: the methods text with its references, and the COBIDAS items."""

from mvpa_gamp.report.cobidas import SOURCE, cobidas_rows
from mvpa_gamp.report.markup import cell, file_link, folded, headings, paragraph, table, text
from mvpa_gamp.report.methods_text import methods_paragraphs, references
from mvpa_gamp.results.reader import Results


def methods_text_section(results: Results) -> str:
    """The paragraphs for a paper and their references, to be copied with one click."""
    prose = "".join(f"<p>{text(part)}</p>" for part in methods_paragraphs(results))
    works = "".join(f"<li>{text(work)}</li>" for work in references(results))
    return folded(
        "methods",
        "Methods text, ready for a paper",
        "Written from the settings of this run, with versions, space and preprocessing.",
        paragraph("Adapt it freely and cite the works below."),
        f'<div class="prose" data-copy="Copy the text">{prose}</div>',
        f'<ol class="references" data-copy="Copy the references">{works}</ol>',
    )


def cobidas_section(results: Results) -> str:
    """The items as a table; the file beside the page has the same lines."""
    rows = cobidas_rows(results)
    body = [cell(row["item"], "name wrap item") + cell(row["reported"], "name wrap") for row in rows]
    link = file_link(results.folder.cobidas, results.folder.root, results.linked)
    caption = f"{text(SOURCE)} The same lines are in {link}."
    known = sum(row["from_the_run"] == "yes" for row in rows)
    return folded(
        "cobidas",
        "COBIDAS items on multivariate modelling",
        f"{known} of {len(rows)} items are filled in from the run; please add the others.",
        table([headings(("What to report", "This run"), 2)], body, caption),
    )
