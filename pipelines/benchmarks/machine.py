"""What the figures were measured on, without naming the machine: CPU, caches, BLAS, versions, commit."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

ROOT = Path(__file__).resolve().parents[2]

_LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "nilearn",
    "skglm",
    "celer",
    "numba",
    "threadpoolctl",
)
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def machine() -> dict[str, Any]:
    """All that a reader needs to judge the figures; unknown facts are None."""
    return {
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "caches": cache_sizes(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "thread_pools": thread_pools(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "commit": commit(),
        "load_average": _load(),
    }


def cpu_model() -> str | None:
    """The name the processor gives itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or None
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or None


def usable_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_sizes() -> dict[str, str]:
    """Sizes of the caches of one core, such as {"L2 Unified": "1024K"}; empty where they are not told."""
    found = {}
    for folder in sorted(_CACHES.glob("index*")):
        try:
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        found[f"L{level} {kind}"] = size
    return found


def thread_pools() -> list[dict[str, Any]]:
    """BLAS and OpenMP libraries in use, their versions and threads."""
    wanted = ("user_api", "internal_api", "version", "num_threads", "architecture")
    return [{name: pool[name] for name in wanted if name in pool} for pool in threadpool_info()]


def commit() -> str | None:
    """The commit of the source, marked when files other than results differ from it; None outside of git."""
    try:
        name = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":!figures")
        return f"{name} with changes" if changed else name
    except (OSError, subprocess.SubprocessError):
        return None


def describe(facts: dict[str, Any]) -> str:
    """One line for people."""
    blas = [
        f"{pool['internal_api']} {pool.get('version')} with {pool['num_threads']} threads"
        for pool in facts["thread_pools"]
        if pool["user_api"] == "blas"
    ]
    caches = ", ".join(f"{name} {size}" for name, size in facts["caches"].items())
    parts = [f"{facts['cpu'] or 'unknown CPU'}, {facts['cores']} cores", caches, *sorted(set(blas))]
    return "; ".join(part for part in parts if part)


def _git(*arguments: str) -> str:
    found = subprocess.run(
        ["git", "--no-optional-locks", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    return found.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _load() -> float | None:
    """Processes that wanted a core in the last minute: above ``cores``, the figures were disturbed."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
