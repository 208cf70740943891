"""What is explained: a finished run with its data."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from kergnn.batches import GraphBatches
from kergnn.config import ConfigError
from kergnn.data import DataError, GraphSet, Split, load_graphs
from kergnn.explain.layout import label_names
from kergnn.nn import KerGNN
from kergnn.prediction import predict_probabilities
from kergnn.preparation import ego_graphs, find_split, make_batches
from kergnn.runs import Reporter, TrainedRun, load_run, read_json


@dataclass(frozen=True)
class Subject:
    """A finished run of a KerGNN and the data it was trained on.

    Args:
        name: name of the run directory.
        run: the run, loaded.
        model: its model.
        graphs: the whole data set.
        split: the split that was used.
        batches: the graphs, with features and ego-graphs.
        results: what ``results.json`` says.
        history: the figures of every epoch.
    """

    name: str
    run: TrainedRun
    model: KerGNN
    graphs: GraphSet
    split: Split
    batches: GraphBatches
    results: dict[str, Any]
    history: list[dict[str, float]]

    @property
    def one_hot_names(self) -> list[str] | None:
        """Names of the input features where these are the one-hot label or degree of a node."""
        features = self.run.features
        if not features.is_one_hot:
            return None
        return label_names(self.graphs) if features.recipe == "label" else features.names

    @property
    def one_hot_frequency(self) -> list[float] | None:
        """How often each of them occurs in the data."""
        if self.one_hot_names is None:
            return None
        frequency: list[float] = self.batches.x.mean(0).tolist()
        return frequency

    def node_labels(self, nodes: Tensor) -> list[str]:
        """Return what some nodes of the set are called: their first label, or nothing."""
        names = label_names(self.graphs)
        if self.graphs.labels is None or names is None:
            return [""] * len(nodes)
        return [names[code] for code in self.graphs.labels[nodes, 0].tolist()]

    def data(self, graph: int) -> Data:
        """Return one graph of the set with the model's input features."""
        first, last = int(self.graphs.ptr[graph]), int(self.graphs.ptr[graph + 1])
        edges = self.graphs.simple_edges
        ends = torch.searchsorted(edges[0].contiguous(), torch.tensor([first, last]))
        return Data(
            x=self.batches.x[first:last],
            edge_index=edges[:, int(ends[0]) : int(ends[1])] - first,
            num_nodes=last - first,
        )

    def check_choice(self, which: Sequence[int], target: str | None) -> None:
        """Refuse graphs (or nodes) and a class that are not there."""
        count, names = len(self.graphs.y), self.run.class_names
        for item in which:
            if not 0 <= item < count:
                raise ConfigError(f"graphs has {item}: it must be from 0 to {count - 1}")
            if self.graphs.task == "graph" and self.graphs.size[item] == 0:
                raise ConfigError(f"graphs has {item}: it must be a graph that has nodes")
        if target is not None and target not in names:
            raise ConfigError(f"class is {target!r}: it must be one of {', '.join(names)}")

    def typical(self, count: int) -> list[int]:
        """Return some graphs (or nodes) of the test part of every class.

        Typical is one that is classified rightly and whose number of nodes (for nodes: of
        neighbours) is nearest to the median of its class. Graphs without nodes are left out.
        """
        part = self.split.test
        if self.graphs.task == "graph":
            filled = self.graphs.size > 0
            part = part[filled[part]] if filled[part].any() else filled.nonzero().flatten()
        size = self.graphs.size if self.graphs.task == "graph" else self.graphs.degree
        right = predict_probabilities(self.model, self.batches, part).argmax(1)
        chosen: list[int] = []
        for c in range(self.graphs.num_classes):
            mine = part[self.graphs.y[part] == c]
            correct = part[(self.graphs.y[part] == c) & (right == c)]
            candidates = correct if len(correct) else mine
            if not len(candidates):
                continue
            far = (size[candidates] - size[mine].float().median()).abs()
            chosen += candidates[far.argsort(stable=True)[:count]].tolist()
        return chosen


def open_run(path: Path, mirror: Path | None = None, reporter: Reporter | None = None) -> Subject:
    """Load a finished run of a KerGNN together with its data, on the CPU."""
    run = load_run(path, device="cpu")
    if not isinstance(run.model, KerGNN):
        raise ConfigError(
            f"{path}: its model is {run.config.model!r}; only runs of 'kergnn' can be explained"
        )
    graphs = load_graphs(run.config.dataset, mirror)
    if read_json(path / "run.json").get("fingerprint") != graphs.fingerprint:
        raise DataError(f"{run.config.dataset}: not the data that the run in {path} was trained on")
    ego = ego_graphs(run.config, graphs, (reporter or Reporter()).building)
    batches = make_batches(run.config, graphs, run.features, ego)
    assert isinstance(batches, GraphBatches)
    with (path / "metrics.csv").open() as file:
        history = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
    return Subject(
        name=path.resolve().name,
        run=run,
        model=run.model,
        graphs=graphs,
        split=find_split(run.config, graphs, mirror),
        batches=batches,
        results=read_json(path / "results.json"),
        history=history,
    )
