"""Files of a results folder that are not what they were: which one, and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class ResultsError(ValueError):
    """A folder that is not a finished results folder."""


class DamagedFile(ResultsError):
    """A file that is there but cannot be read as what it should be, or is not what its run wrote."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is damaged ({reason}). Write it again from the stored fits: repeat the command of its "
            "run with --resume."
        )


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Whatever breaks a reader of a file that is there is damage; ``kind`` says what it should hold.

    Readers of damaged bytes fail in more ways than can be listed: zlib, zipfile, nibabel and the parsers
    have an error type each. A file that is missing, or may not be read, raises what it always did.
    """
    try:
        yield
    except (DamagedFile, FileNotFoundError, PermissionError):
        raise
    except (IsADirectoryError, NotADirectoryError) as error:
        raise DamagedFile(path, "a folder and a file have changed places") from error
    except Exception as error:
        raise DamagedFile(path, f"it cannot be read as {kind}") from error
