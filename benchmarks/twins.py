"""How many nodes of a set have a twin, a node with the very same neighbours, and of which class.

    python benchmarks/twins.py Cora Citeseer Pubmed Chameleon

Twins in the training part tell the class of those in the test part to whoever knows neighbours by
name, as the recipe ``neighbors`` does. Results go to ``results/twins.json``.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

from kergnn.data import GraphSet, load_graphs
from kergnn.data.store import write_atomic

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("datasets", nargs="+")
parser.add_argument("--data-mirror", type=Path)
parser.add_argument("--out", type=Path, default=Path("results/twins.json"))


def count(graphs: GraphSet) -> dict[str, int]:
    """Return how many nodes have a twin, and how many of these are of their twins' main class."""
    neighbors = defaultdict(list)
    for node, other in graphs.simple_edges.T.tolist():
        neighbors[node].append(other)
    classes = defaultdict(list)  # of all nodes with the same neighbours
    for node, others in neighbors.items():
        classes[tuple(sorted(others))].append(int(graphs.y[node]))
    groups = [group for group in classes.values() if len(group) > 1]
    return {
        "nodes": graphs.num_nodes,
        "with_a_twin": sum(map(len, groups)),
        "of_the_main_class": sum(max(map(group.count, group)) for group in groups),
    }


if __name__ == "__main__":
    arguments = parser.parse_args()
    found = {name: count(load_graphs(name, arguments.data_mirror)) for name in arguments.datasets}
    write_atomic(arguments.out, f"{json.dumps(found, indent=1)}\n".encode())
    for name, counts in found.items():
        print(name, counts)
