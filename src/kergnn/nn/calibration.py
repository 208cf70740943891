"""Batch statistics that fit the weights they are used with."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def calibrated_norms(model: nn.Module) -> Iterator[None]:
    """Estimate the running statistics of all batch norms anew, from the forward passes inside.

    While a model is trained, the running mean and variance of a batch norm lag behind the weights.
    A sum readout multiplies that small error by the number of nodes: on small data sets a model can
    rank almost perfectly and yet put every graph into one class. A few forward passes on training
    batches, with dropout off and without gradients, remove the lag::

        with calibrated_norms(net):
            for batch in train_loader:
                net(batch.x, EgoGraphs.from_data(batch), batch.batch, batch.num_graphs)
        net.eval()

    Batches count alike; the model's mode is left as it was, and so are the statistics of a norm
    that saw no batch inside (a batch of one graph has no variance).
    """
    was_training = model.training
    norms = batch_norms(model)
    momenta = [norm.momentum for norm in norms]
    before = [copy.deepcopy(norm.state_dict()) for norm in norms]
    model.eval()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the plain average of all batches
        norm.train()
    try:
        with torch.no_grad():
            yield
    finally:
        for norm, momentum, state in zip(norms, momenta, before, strict=True):
            norm.momentum = momentum
            if norm.num_batches_tracked == 0:
                norm.load_state_dict(state)
        model.train(was_training)


def batch_norms(model: nn.Module) -> list[_BatchNorm]:
    """Return all batch norms of a model."""
    return [module for module in model.modules() if isinstance(module, _BatchNorm)]
