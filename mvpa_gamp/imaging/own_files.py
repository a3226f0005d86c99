"""A user's own files: volumes, a label per volume and a mask."""

from dataclasses import dataclass, replace

from mvpa_gamp.imaging.errors import DataError
from mvpa_gamp.imaging.samples import Samples, load_samples
from mvpa_gamp.imaging.source import Source


@dataclass(frozen=True, kw_only=True)
class OwnFiles(Source):
    """BOLD files in the order of the labels, their label file and a mask, all three needed.

    ``confounds`` is one TSV for all volumes, or one per BOLD file.
    """

    bold: tuple[str, ...] = ()
    labels: str = ""
    mask: str = ""
    participant_label: str = "01"
    lag_trs: int = 0
    confounds: tuple[str, ...] = ()

    name = "your own files"
    paths = ("bold", "labels", "mask", "confounds")

    def resolve(self) -> "OwnFiles":
        """The same with absolute paths; all three kinds of files are needed."""
        missing = [f"--{name}" for name in ("bold", "labels", "mask") if not getattr(self, name)]
        if self.mask in ("vt", "brain"):
            missing.append(f"a file for --mask ({self.mask} belongs to Haxby's data)")
        if missing:
            raise DataError(
                f"Your own data need --bold, --labels and --mask FILE; missing: {', '.join(missing)}. Add it."
            )
        self.processing(self.lag_trs)
        return replace(self.absolute(), participant_label=self.participant_label.removeprefix("sub-"))

    def load(self) -> Samples:
        """Samples of the files."""
        ready = self.resolve()
        steps = ready.processing(ready.lag_trs, confounds=ready.confounds)
        return load_samples(ready.bold, ready.labels, ready.mask, steps, ready.participant_label)
