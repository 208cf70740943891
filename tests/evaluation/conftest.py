import json

import pytest

from kergnn.evaluation import SearchSpace, make_plan

SMALL = {"hidden_channels": 4, "epochs": 2, "num_layers": [1, 2, 3]}


@pytest.fixture
def small_plan():
    """Return a function that plans three configurations on MUTAG, with changes."""

    def plan(folds=2, repeats=2, search="grid", **values):
        return make_plan(
            "MUTAG",
            SearchSpace.from_values({**SMALL, **values}),
            folds=folds,
            repeats=repeats,
            search=search,
        )

    return plan


@pytest.fixture
def contents():
    """Return a function that reads a store, without what differs from run to run."""

    def read(folder):
        found = {}
        for path in sorted(folder.rglob("*.json")):
            record = json.loads(path.read_text())
            del record["measured"], record["checksum"]
            found[str(path.relative_to(folder))] = record
        return found

    return read


@pytest.fixture
def own_graphs():
    """Return a function that writes rings and paths to a file."""

    def write(path, count=30):
        lines = []
        for i in range(count):
            n = 5 + i % 4
            edges = [[j, j + 1] for j in range(n - 1)] + ([[n - 1, 0]] if i % 2 else [])
            graph = {"nodes": ["C"] * n, "edges": edges, "label": "ring" if i % 2 else "path"}
            lines.append(json.dumps(graph))
        path.write_text("\n".join(lines))
        return path

    return write
