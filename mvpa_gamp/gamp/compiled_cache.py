"""Where compiled loops are kept: in the user's cache folder, never beside the source.

Numba would write into ``__pycache__`` of the package, where files outlive an uninstall and keep a folder that
hides the next install. Only our own loops are told where to go; Numba's settings stay as they are, and its
variable NUMBA_CACHE_DIR still wins. This module loads Numba.
"""

import hashlib
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

from mvpa_gamp._version import __version__

_log = logging.getLogger("mvpa_gamp")


def cache_folder() -> Path:
    """NUMBA_CACHE_DIR, or mvpa_gamp/numba/<version> in XDG_CACHE_HOME or ~/.cache."""
    wanted = getattr(config, "CACHE_DIR", "")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(wanted) if wanted else Path(base) / "mvpa_gamp" / "numba" / __version__


def keep_on_disk(loop: Any) -> Any:
    """The compiled function ``loop``, from now on loaded from and saved to the folder.

    Without a folder to write to it is compiled in every process: slower by seconds, and nothing else.
    """
    try:
        loop._cache = _UserCache(loop.py_func)
    except Exception as error:  # no home, a read-only disk, another Numba: none of them is worth an error
        _log.debug("Compiled loops are not kept on disk: %s", error)
    return loop


class _Locator(_CacheLocator):
    """One folder for all loops; a file is known by the function's line and the content of its source."""

    def __init__(self, function: Any, source: str) -> None:
        self._folder = str(cache_folder())
        self._line = function.__code__.co_firstlineno
        self._stamp = hashlib.sha256(Path(source).read_bytes()).hexdigest()
        self._py_file = source

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Locator":
        locator = cls(py_func, py_file)
        locator.ensure_cache_path()
        return locator

    def get_cache_path(self) -> str:
        return self._folder

    def get_source_stamp(self) -> str:
        return self._stamp

    def get_disambiguator(self) -> str:
        return f"{self._line}-{self._stamp[:12]}"


class _UserCacheImpl(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012 (Numba's own form)


class _UserCache(FunctionCache):
    """Numba's cache in our folder; a file that cannot be read or written is as good as none."""

    _impl_class = _UserCacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            with suppress(OSError):
                self.flush()  # a damaged index is written anew
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(Exception):  # a full disk, for example
            super().save_overload(sig, data)
