"""Files that are there whole or not at all."""

import os
import uuid
from pathlib import Path


def write_atomic(path: Path, *chunks: bytes | memoryview) -> Path:
    """Write ``chunks`` to ``path`` through a temporary file in the same folder and one rename.

    A reader, or a run that was killed, sees all of the file or nothing of it. Folders are made as needed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = path.with_name(f".writing-{uuid.uuid4().hex}")
    try:
        with waiting.open("xb") as stream:
            for chunk in chunks:
                stream.write(chunk)
        os.replace(waiting, path)
    except BaseException:
        waiting.unlink(missing_ok=True)
        raise
    return path
