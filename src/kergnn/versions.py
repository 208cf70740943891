"""What a number depends on besides data and settings: software, its source, and the processor."""

from __future__ import annotations

import hashlib
import platform
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def software_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide a result, if installed."""
    found = {"python": platform.python_version()}
    for package in (
        "kergnn",
        "torch",
        "torch_geometric",
        "numpy",
        "numba",
        "grakel",
        "scipy",
        "scikit-learn",
    ):
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    # Between two releases the version of this package stays the same.
    return {**found, "source": source_hash()}


@cache
def source_hash() -> str:
    """Return a short hash of the source files of this package, as they were when first asked."""
    return hash_source(Path(__file__).parent)


def hash_source(folder: Path) -> str:
    """Return a short hash of the content of all Python files in a folder, in the order of paths."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py"), key=lambda path: path.relative_to(folder).as_posix()):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


@cache
def processor() -> str:
    """Return the name of the processor, empty where the system does not tell it."""
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


@cache
def library_code() -> dict[str, str]:
    """Return for which processor or instructions libraries take the code they multiply with.

    They choose by more than a processor's name tells: of two called "AMD EPYC" one has OpenBLAS,
    which numpy and scipy use, take its code for SkylakeX and a newer one that for Haswell.
    """
    import torch
    from threadpoolctl import threadpool_info

    for user in ("numpy.linalg", "scipy.linalg"):
        import_module(user)  # only what is loaded is found
    found: dict[str, set[str]] = {"torch": {torch.backends.cpu.get_cpu_capability()}}
    for info in threadpool_info():
        if "architecture" in info:
            found.setdefault(info["internal_api"], set()).add(info["architecture"])
    return {library: " and ".join(sorted(names)) for library, names in found.items()}
