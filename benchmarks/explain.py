"""Measure how true explanations are, and how readable filters.

    python benchmarks/explain.py BA-2Motifs Mutagenicity --data-mirror DIR
    python benchmarks/explain.py recovery

``BA-2Motifs`` and ``Mutagenicity`` train a KerGNN and a GIN with every seed, on the fold of that
number, explain the test graphs that have a motif, for their true class, and compare the edge masks
with the truth: our own explanation of the KerGNN beside GNNExplainer and PGExplainer on both
networks. These take much longer and therefore explain at most 40 of the graphs. ``recovery`` trains
on the planted motifs and counts the runs in which a filter, cut at half of its largest edge, is
isomorphic to the motif, and the filters that occur in the data at all. Results are in
``results/explain/NAME.json``, written after every run; runs that are there are not repeated.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer, Explanation, GNNExplainer, PGExplainer

from kergnn.config import RunConfig
from kergnn.data import GraphSet, ground_truth, load_graphs
from kergnn.data.motifs import MOTIFS, motif_graph
from kergnn.data.store import write_atomic
from kergnn.explain import explain
from kergnn.explain.filters import filter_graphs
from kergnn.explain.matches import to_networkx
from kergnn.explain.metrics import (
    existence_rate,
    fidelity_scores,
    recovered,
    redundancy,
    stability,
    truth_auc,
)
from kergnn.explain.pyg import explainable
from kergnn.preparation import (
    ego_graphs,
    find_split,
    hide_test,
    make_batches,
    prepare_trainer,
    resolve_config,
)
from kergnn.training import metrics, predict_probabilities

SETTINGS = {
    "BA-2Motifs": {
        "num_layers": 1,
        "num_hops": 2,
        "max_nodes": None,
        "readout": "evidence",
        "evidence_penalty": 2.0,
        "dropout": 0.0,
        "epochs": 60,
        "patience": 60,
    },
    "Mutagenicity": {
        "num_layers": 2,
        "readout": "evidence",
        "evidence_penalty": 2.0,
        "dropout": 0.0,
        "epochs": 25,
        "learning_rate": 0.005,
    },
}
GIN_SETTINGS = {"model": "gin", "num_layers": 3, "dropout": 0.0, "epochs": 50}
# The radius at which an ego-graph can hold the whole motif.
PLANTED_HOPS = {"ring6": 3, "star": 1, "clique": 1, "house": 2}
PLANTED = {
    "num_layers": 1,
    "max_nodes": None,
    "filter_init": "ego",
    "hard_edges": True,
    "epochs": 30,
}
CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
GNN_EPOCHS, PG_EPOCHS, PG_GRAPHS = 100, 20, 200
LIMIT = 40


def train(config: RunConfig, graphs: GraphSet, mirror: Path | None) -> tuple:
    """Train, and return the model, the features of all nodes, the split and the test figures."""
    config = resolve_config(config, graphs)
    split, ego = find_split(config, graphs, mirror), ego_graphs(config, graphs)
    trainer, features = prepare_trainer(config, hide_test(graphs, ego, split))
    trainer.run()
    batches = make_batches(config, graphs, features, ego)
    probabilities = predict_probabilities(trainer.model, batches, split.test)
    figures = metrics(probabilities, graphs.y[split.test])
    return config, trainer.model.eval(), features(graphs), split, figures


def gnn_explainer(model: nn.Module, graphs: list[Data]) -> list[Tensor]:
    """Return the edge masks of GNNExplainer."""
    module = explainable(model)
    explainer = Explainer(
        module,
        GNNExplainer(epochs=GNN_EPOCHS, lr=0.01),
        explanation_type="phenomenon",
        edge_mask_type="object",
        model_config=CONFIG,
    )
    return [explainer(d.x, d.edge_index, target=d.y).edge_mask for d in graphs]


def pg_explainer(model: nn.Module, train_part: list[Data], graphs: list[Data]) -> list[Tensor]:
    """Return the edge masks of PGExplainer, trained on some graphs of the training part."""
    module = explainable(model)
    algorithm = PGExplainer(epochs=PG_EPOCHS, lr=0.003)
    explainer = Explainer(
        module,
        algorithm,
        explanation_type="phenomenon",
        edge_mask_type="object",
        model_config=CONFIG,
    )
    chosen = train_part[:: max(1, len(train_part) // PG_GRAPHS)]
    for epoch in range(PG_EPOCHS):
        for start in range(0, len(chosen), 20):
            batch = Batch.from_data_list(chosen[start : start + 20])
            algorithm.train(
                epoch, module, batch.x, batch.edge_index, target=batch.y, batch=batch.batch
            )
    return [explainer(d.x, d.edge_index, target=d.y).edge_mask for d in graphs]


def score(masks: list[Tensor], graphs: list[Data], model: nn.Module | None = None) -> dict:
    """Return the AUC of edge masks and, with a model, their fidelity."""
    auc = truth_auc(masks, [d.edge_truth for d in graphs])
    found = {"auc": auc.mean, "auc_pooled": auc.pooled, "graphs": auc.count}
    if model is not None:
        kept = [
            Explanation(x=d.x, edge_index=d.edge_index, edge_mask=mask)
            for d, mask in zip(graphs[:LIMIT], masks, strict=False)
        ]
        found["fidelity"] = vars(fidelity_scores(model, kept))
    return found


def measure(name: str, seed: int, mirror: Path | None, common: list[int] | None) -> dict:
    """Return all figures of one seed, and our masks for the graphs ``common``."""
    graphs = load_graphs(name, mirror)
    truth = ground_truth(graphs)
    plain = RunConfig(dataset=name, seed=seed, fold=seed)
    rows: dict = {"seed": seed, "fold": seed}
    for kind, settings in (("kergnn", SETTINGS[name]), ("gin", GIN_SETTINGS)):
        start = time.perf_counter()
        config, model, x, split, figures = train(plain.replace(settings), graphs, mirror)
        rows[kind] = {"test": figures, "train_seconds": time.perf_counter() - start}
        all_data = truth.to_data_list(x)
        test = [all_data[g] for g in split.test.tolist() if all_data[g].edge_truth.any()]
        if kind == "kergnn":
            start = time.perf_counter()
            found = [explain(model, d, int(d.y)) for d in test]
            seconds = (time.perf_counter() - start) / len(test)
            masks = [e.edge_contribution for e in found]
            rows[kind]["kergnn"] = score(masks, test, model)
            rows[kind]["kergnn"] |= {
                "auc_masks": score([e.edge_mask for e in found], test)["auc"],
                "auc_nodes": truth_auc(
                    [e.node_contribution for e in found], [d.node_truth for d in test]
                ).mean,
                "seconds_a_graph": seconds,
            }
            rows["settings"] = config.replace({"seed": 0, "fold": 0}).to_toml().splitlines()
            rows["common"] = [
                explain(model, all_data[g], int(all_data[g].y)).edge_contribution.tolist()
                for g in common or []
            ]
        torch.manual_seed(seed)
        test = test[:: max(1, len(test) // LIMIT)][:LIMIT]
        start = time.perf_counter()
        rows[kind]["GNNExplainer"] = score(gnn_explainer(model, test), test, model)
        rows[kind]["GNNExplainer"]["seconds_a_graph"] = (time.perf_counter() - start) / len(test)
        part = [all_data[g] for g in split.train.tolist()]
        rows[kind]["PGExplainer"] = score(pg_explainer(model, part, test), test, model)
        print(name, "seed", seed, kind, json.dumps(rows[kind]), flush=True)
    return rows


def measure_recovery(motif: str, seed: int) -> dict:
    """Return whether a filter became the motif, and how many filters occur in the data."""
    name = f"Planted-{motif}"
    graphs = load_graphs(name)
    settings = {**PLANTED, "num_hops": PLANTED_HOPS[motif]}
    config = RunConfig(dataset=name, seed=seed, fold=seed % 10).replace(settings)
    config, model, x, split, figures = train(config, graphs, None)
    filters = [graph for layer in filter_graphs(model) for graph in layer]
    data = to_networkx(graphs, split.train.tolist())
    found = recovered(filters, motif_graph(motif))
    all_data = graphs.to_data_list(x)
    test = [all_data[g] for g in split.test.tolist() if all_data[g].edge_truth.any()]
    masks = [explain(model, d, int(d.y)).edge_mask for d in test]
    row = {
        "motif": motif,
        "seed": seed,
        "test_accuracy": figures["accuracy"],
        "recovered": bool(found),
        "filters": len(filters),
        "motif_filters": len(found),
        "existence": existence_rate(filters, data),
        "redundancy": redundancy(model),
        "auc": truth_auc(masks, [d.edge_truth for d in test]).mean,
    }
    print(json.dumps(row), flush=True)
    return row


def summary(rows: list[dict]) -> dict:
    """Return the mean and deviation over the seeds of the main figures."""
    found = {}
    for kind, method in (
        ("kergnn", "kergnn"),
        ("kergnn", "GNNExplainer"),
        ("kergnn", "PGExplainer"),
        ("gin", "GNNExplainer"),
        ("gin", "PGExplainer"),
    ):
        values = torch.tensor([row[kind][method]["auc"] for row in rows], dtype=torch.float64)
        found[f"{method} on {kind}" if method != kind else "kergnn"] = {
            "auc": float(values.mean()),
            "std": float(values.std(correction=0)),
        }
    for kind in ("kergnn", "gin"):
        values = [row[kind]["test"]["accuracy"] for row in rows]
        found[f"accuracy of {kind}"] = sum(values) / len(values)
    masks = [[torch.tensor(m) for m in row["common"]] for row in rows if row["common"]]
    if len(masks) > 1:
        found["stability"] = stability(masks)
    return found


def main() -> None:
    """Parse the arguments, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", choices=[*SETTINGS, "recovery"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--data-mirror", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/explain"))
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message="Converting a tensor with requires_grad")
    for name in arguments.names:
        path = arguments.out / f"{name}.json"
        rows = json.loads(path.read_text())["runs"] if path.is_file() else []
        jobs = [(m, s) for m in (MOTIFS if name == "recovery" else [None]) for s in arguments.seeds]
        for motif, seed in jobs:
            if any(r["seed"] == seed and r.get("motif") == motif for r in rows):
                continue
            if motif is not None:
                rows.append(measure_recovery(motif, seed))
                record = {
                    "recovered": sum(r["recovered"] for r in rows) / len(rows),
                    "existence": sum(r["existence"] for r in rows) / len(rows),
                    "settings": PLANTED,
                    "runs": rows,
                }
            else:
                truth = ground_truth(load_graphs(name, arguments.data_mirror))
                marked = truth.graph_of[truth.node_truth].unique().tolist()
                common = marked[:: max(1, len(marked) // 30)]
                rows.append(measure(name, seed, arguments.data_mirror, common))
                record = {"summary": summary(rows), "runs": rows}
            write_atomic(path, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
