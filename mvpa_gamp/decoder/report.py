"""The page of a fitted decoder, built from the folder that ``to_bids`` writes, in nilearn's HTMLReport."""

import difflib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any

from nilearn.reporting import HTMLReport

from mvpa_gamp.decoder.contrast_maps import contrast_key
from mvpa_gamp.decoder.folder import write_folder
from mvpa_gamp.decoder.voxels import FoundVoxels
from mvpa_gamp.decoding.permutation import PermutationTest
from mvpa_gamp.report.page import draw_figures, render
from mvpa_gamp.results.files import write_text
from mvpa_gamp.results.reader import read_results

_OFFERED = 10  # contrasts listed in a message


class DecoderReport(HTMLReport):
    """The page, with nilearn's ``save_as_html`` and ``open_in_browser``; a notebook shows it in a frame."""

    def save_as_html(self, file_name: str | Path) -> None:
        """Write the page as it is: one file that opens offline."""
        write_text(Path(file_name), self.html)

    def _repr_html_(self) -> str:
        return str(self.get_iframe(width=1180, height=900))


def chosen_contrasts(decoder: Any, names: Sequence[str] | None, count: int) -> list[int]:
    """Numbers of the contrasts to draw: those named, either way round, or the first ``count``."""
    known = list(decoder.contrasts_)
    if names is None:
        return list(range(min(max(1, count), len(known))))
    turned = [contrast_key(b, a) for a, b in decoder._data.pairs]
    places = dict(zip([*known, *turned], [*range(len(known))] * 2, strict=True))
    wanted = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in wanted if name not in places]
    if unknown or not wanted:
        close = difflib.get_close_matches(str(unknown[0]), places, n=3) if unknown else []
        near = list(dict.fromkeys(known[places[name]] for name in close))
        others = [name for name in known if name not in near]
        listed = ", ".join(map(repr, [*near, *others][:_OFFERED]))
        more = " ..." if len(near + others) > _OFFERED else ""
        raise ValueError(
            f"contrasts: expected names among contrasts_ ({listed}{more}), got "
            f"{', '.join(map(repr, unknown)) or 'none'}. Choose among them, or leave it out for the first "
            f"{min(count, len(known))}."
        )
    return list(dict.fromkeys(places[name] for name in wanted))


def decoder_report(
    decoder: Any, title: str | None, subject: str, drawn: list[int], permutation: PermutationTest | None,
    voxels: FoundVoxels,
) -> DecoderReport:  # fmt: skip
    """Write the decoder's folder to a temporary place and make its page, with figures of some contrasts."""
    with TemporaryDirectory(prefix="mvpa_gamp-") as place:
        results = read_results(write_folder(decoder, Path(place), subject, permutation, voxels))
        contrasts = tuple(results.tasks[place]["contrast"] for place in drawn)
        results = replace(results, drawn=contrasts, linked=False)
        draw_figures(results)
        name = title or f"mvpa_gamp: {', '.join(map(str, decoder.classes_[:8]))}"
        page = render(results, name)
    return DecoderReport(Template("$page"), "", {"page": page})
