"""Which atoms made a prediction, and what do the filters look like? Writes two pictures.

python explain.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import torch

from kergnn.config import RunConfig
from kergnn.data import load_graphs
from kergnn.explain import draw_filters, draw_graph, explain
from kergnn.runs import load_run, start_run

ATOMS = ["C", "N", "O", "F", "I", "Cl", "Br"]  # the labels 0 to 6 of MUTAG


def main(folder: Path) -> None:
    config = RunConfig(dataset="MUTAG", hidden_channels=16, epochs=20)
    results = start_run(config, folder / "run")
    print(f"test accuracy {results['test']['accuracy']:.1%}")

    run = load_run(folder / "run")
    molecules = load_graphs("MUTAG")
    molecule = molecules.to_data_list(run.features(molecules))[0]
    explanation = explain(run.model, molecule)
    symbols = [ATOMS[int(row.argmax())] for row in molecule.x]
    print(
        f"predicted class {run.class_names[int(explanation.target)]}; the atoms that speak for it:"
    )
    for atom in explanation.node_contribution.topk(3).indices.tolist():
        neighbours = molecule.edge_index[1, molecule.edge_index[0] == atom].tolist()
        share = float(explanation.node_contribution[atom])
        bonds = ", ".join(f"{symbols[n]}{n}" for n in neighbours)
        print(f"  {symbols[atom]}{atom} (bound to {bonds}): {share:+.2f}")

    title = f"for class {run.class_names[int(explanation.target)]} (orange) and against (blue)"
    draw_graph(explanation, labels=symbols, title=title).savefig(folder / "explanation.svg")
    draw_filters(run.model, names=ATOMS, most=8).savefig(folder / "filters.svg")
    print(f"pictures in {folder}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
