"""Trials of kernels with a support vector machine.

The Gram matrix of all graphs is computed once for each data set, set of features and kernel
parameters, and kept in a folder. No class is needed for it, and an entry depends on its two graphs
only; a kernel that is fitted to graphs is given those of the training part. What a machine is
fitted to is cut out of it.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kergnn.baselines import get_baseline
from kergnn.baselines.machine import KernelMachine
from kergnn.config import RunConfig, hash_json
from kergnn.data import DataError, GraphSet
from kergnn.data.store import load_tensors, save_tensors
from kergnn.locks import Locks
from kergnn.models import checked_options, shared_arguments
from kergnn.versions import software_versions


def gram_matrix(
    config: RunConfig,
    graphs: GraphSet,
    x: Tensor,
    train: Tensor,
    folder: Path | None,
    progress: Callable[[int, int], None] | None = None,
) -> Tensor:
    """Return the Gram matrix (G, G), from the folder if it is there.

    Args:
        config: the kernel and its parameters.
        graphs: the graphs.
        x: (N, d) node features.
        train: positions of the training graphs, for a kernel that is fitted to them.
        folder: where matrices are kept.
        progress: called with the work done and the work there is, if there is any.
    """
    function = get_baseline(config.model).load()
    arguments = _arguments(config)
    fitted = {"train": train} if is_fitted(config.model) else {}

    def compute() -> Tensor:
        return torch.from_numpy(function(graphs, x, **arguments, **fitted, progress=progress))

    if folder is None:
        return compute()
    digest = hashlib.sha256(graphs.fingerprint.encode() + x.contiguous().numpy().tobytes())
    digest.update(train.numpy().tobytes() if fitted else b"")
    # A kernel whose code or whose defaults have changed is another kernel.
    digest.update(hash_json(software_versions()).encode())
    key = hash_json([config.model, arguments, digest.hexdigest()])[:24]
    path = folder / graphs.name / f"{config.model}-{key}.safetensors"
    with Locks(folder / ".lock") as locks:
        locks.claim(key, wait=True)  # of several workers one computes, the others wait
        if path.is_file():
            with suppress(DataError):  # damaged: computed again
                return load_tensors(path)[0]["gram"]
        matrix = compute()
        with suppress(OSError):  # a full disk only costs the time to compute it again
            save_tensors(path, {"gram": matrix}, {"arguments": arguments})
    return matrix


def is_fitted(model: str) -> bool:
    """Return whether a kernel is fitted to training graphs, so that every split has a matrix."""
    return "train" in inspect.signature(get_baseline(model).load()).parameters


def check_machine(config: RunConfig) -> None:
    """Refuse options that the kernel or its machine does not take, by using them on two edges."""
    KernelMachine(2, _price(config))
    size, edges = torch.tensor([2, 2]), torch.tensor([[0, 2], [1, 3]])
    graphs = GraphSet("two edges", "graph", size, edges, torch.tensor([0, 1]), ("a", "b"))
    gram_matrix(config, graphs, torch.ones(4, 1), torch.arange(2), folder=None)


def fit_machine(config: RunConfig, K: Tensor, y: Tensor, num_classes: int) -> KernelMachine:
    """Fit a machine to the Gram matrix (n, n) and the classes (n,) of the training part."""
    machine = KernelMachine(num_classes, _price(config))
    return machine.fit(K.numpy(), y.numpy())


def class_ranking(machine: KernelMachine, K: Tensor) -> Tensor:
    """Return the softmax of the decision values: it ranks the classes, but is not calibrated."""
    return torch.from_numpy(machine.scores(K.numpy())).softmax(1)


def _price(config: RunConfig) -> float:
    price: float = dict(config.options).get("C", 1.0)
    return price


def _arguments(config: RunConfig) -> dict[str, Any]:
    """Return the arguments of the kernel: keys of the configuration that it knows, and options."""
    options = checked_options(config)
    options.pop("C", None)
    known = set(inspect.signature(get_baseline(config.model).load()).parameters)
    return shared_arguments(config, known) | options
