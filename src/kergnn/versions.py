"""What a number depends on besides data and settings: software, its source, and the processor."""

from __future__ import annotations

import hashlib
import platform
from contextlib import suppress
from functools import cache
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
    """Return which code libraries take here, as far as they tell, and how they round a product.

    They choose by more than the processor's name: by its maker, by what it can, or by a variable
    such as ``OPENBLAS_CORETYPE``. MKL, by which torch multiplies on many processors, does not tell
    what it chose, so there is a hash of products of one thread: other code, other last bits.
    """
    import numpy as np
    import torch
    from threadpoolctl import threadpool_info

    from kergnn._threads import use_threads

    matrix = torch.arange(64 * 517, dtype=torch.float32).sin().view(64, 517)
    with use_threads(1):
        by_torch = torch.mm(matrix, matrix.T.contiguous()).numpy()
        by_numpy = np.matmul(matrix.double().numpy(), matrix.T.double().numpy())
    taken = {"torch": torch.backends.cpu.get_cpu_capability()}
    for info in threadpool_info():
        if info.get("architecture"):  # of BLAS libraries, where they tell
            taken[info["internal_api"]] = info["architecture"]
    rounded = hashlib.sha256(by_torch.tobytes() + by_numpy.tobytes()).hexdigest()[:8]
    return {**taken, "products": rounded}
