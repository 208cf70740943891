"""Trials of kernels with a support vector machine.

The Gram matrix of all graphs is computed once for each data set, set of features and kernel
parameters, and kept in a folder; no class is needed for it. What a machine is fitted to is cut out
of it: a selection trial gets the rows and columns of the training and validation part only.
"""

from __future__ import annotations

import hashlib
import inspect
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


def gram_matrix(config: RunConfig, graphs: GraphSet, x: Tensor, folder: Path | None) -> Tensor:
    """Return the Gram matrix (G, G), from the folder if it is there."""
    function = get_baseline(config.model).load()
    arguments = _arguments(config, set(inspect.signature(function).parameters))
    if folder is None:
        return torch.from_numpy(function(graphs, x, **arguments))
    digest = hashlib.sha256(graphs.fingerprint.encode() + x.contiguous().numpy().tobytes())
    key = hash_json([config.model, arguments, digest.hexdigest()])[:24]
    path = folder / graphs.name / f"{config.model}-{key}.safetensors"
    with Locks(folder / ".lock") as locks:
        locks.claim(key, wait=True)  # of several workers one computes, the others wait
        if path.is_file():
            with suppress(DataError):  # damaged: computed again
                return load_tensors(path)[0]["gram"]
        matrix = torch.from_numpy(function(graphs, x, **arguments))
        save_tensors(path, {"gram": matrix}, {"arguments": arguments})
    return matrix


def fit_machine(config: RunConfig, K: Tensor, y: Tensor, num_classes: int) -> KernelMachine:
    """Fit a machine to the Gram matrix (n, n) and the classes (n,) of the training part."""
    machine = KernelMachine(num_classes, dict(config.options).get("C", 1.0))
    return machine.fit(K.numpy(), y.numpy())


def class_ranking(machine: KernelMachine, K: Tensor) -> Tensor:
    """Return the softmax of the decision values: it ranks the classes, but is not calibrated."""
    return torch.from_numpy(machine.scores(K.numpy())).softmax(1)


def _arguments(config: RunConfig, known: set[str]) -> dict[str, Any]:
    """Return the arguments of the kernel: keys of the configuration that it knows, and options."""
    known = known - {"graphs", "x", "progress"}
    options = checked_options(config, known | {"C"})
    options.pop("C", None)
    return shared_arguments(config, known) | options
