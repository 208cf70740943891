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
