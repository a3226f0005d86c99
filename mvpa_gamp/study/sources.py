"""Which source of data a study means, by the names of its settings."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mvpa_gamp.imaging.bids.betas import BetasSource
from mvpa_gamp.imaging.bids.source import BidsSource
from mvpa_gamp.imaging.haxby import HaxbySource, find_haxby
from mvpa_gamp.imaging.own_files import OwnFiles
from mvpa_gamp.imaging.phantom.source import PhantomSource
from mvpa_gamp.imaging.source import Source
from mvpa_gamp.study.errors import StudyError

KINDS: tuple[type[Source], ...] = (HaxbySource, OwnFiles, BidsSource, BetasSource, PhantomSource)

# The settings by which a source is named, as the command line calls them.
_NAMED_BY: dict[str, tuple[type[Source], tuple[str, ...]]] = {
    "--bold/--labels": (OwnFiles, ("bold", "labels")),
    "--data-dir/--fetch": (HaxbySource, ("data_dir", "fetch")),
    "--phantom/--phantom-shape": (PhantomSource, ("phantom", "phantom_shape")),
}


def choose_source(values: Mapping[str, Any]) -> Source:
    """The source that some settings mean; those that have no meaning for it are refused."""
    kind = _kind(values)
    known = {each.name for each in fields(kind)}
    every = {each.name for other in KINDS for each in fields(other)} - {"pairs", "seed"}
    for name, value in values.items():
        if value and name in every and name not in known:
            option = "--" + name.replace("_", "-")
            raise StudyError(f"{option} has no meaning for {kind.name}. Leave it out.")
    return kind(**{name: value for name, value in values.items() if name in known and value is not None})


def _kind(values: Mapping[str, Any]) -> type[Source]:
    """Without any data option Haxby's volumes."""
    if values.get("bids_dir"):
        return BetasSource if values.get("betas") or values.get("samples") == "betas" else BidsSource
    named = [option for option, (_, names) in _NAMED_BY.items() if any(values.get(name) for name in names)]
    if len(named) > 1:
        raise StudyError(f"Data come from one source, got options of {' and '.join(named)}. Choose one.")
    return _NAMED_BY[named[0]][0] if named else HaxbySource


def is_missing(source: Source) -> bool:
    """Whether nobody asked for Haxby's data, and nilearn's data folders do not hold them."""
    if not isinstance(source, HaxbySource) or source.data_dir or source.fetch or source.participant_label:
        return False
    return find_haxby(1) is None
