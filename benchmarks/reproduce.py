"""Whether what is stored still comes out: one training of every evaluation in the tables, again.

    python benchmarks/reproduce.py

trains the first run of one fold, another one from evaluation to evaluation, and compares every
digit as ``kergnn reproduce`` does. Digits of another processor cannot be expected, so evaluations
that were made on one are named and left out. Results go to ``results/reproduced.json``, training
after training; what is there is not run again.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from kergnn.data.store import write_atomic
from kergnn.evaluation import ResultStore
from kergnn.evaluation.reproduce import reproduce
from kergnn.evaluation.results import Result, stored_results
from kergnn.versions import processor, software_versions

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--store", type=Path, default=Path("results"))
parser.add_argument("--data-mirror", type=Path)
parser.add_argument("--out", type=Path, default=Path("results/reproduced.json"))


def processors(result: Result, store: ResultStore) -> set[str]:
    """Return the processors of all test accuracies of an evaluation, as far as they are told."""
    keys = [key for fold in result.record["folds"] for key in fold["assessment"]]
    trials = [store.trial(result.dataset, key) for key in keys]
    return {trial["measured"].get("processor") for trial in trials if trial} - {None}


def again(result: Result, fold: int, store: ResultStore, mirror: Path | None) -> dict[str, Any]:
    """Train run 0 of a fold again; returns what was found."""
    found = reproduce(store, result.dataset, result.model, fold, 0, mirror)
    return {
        "evaluation": result.record["key"],
        "fold": fold,
        "equal": found.equal,
        "differs": [row.figure for row in found.rows if not row.equal],
        "processor": processor(),
        "source": software_versions()["source"],
    }


if __name__ == "__main__":
    arguments = parser.parse_args()
    store, out = ResultStore(arguments.store), arguments.out
    records = json.loads(out.read_text()) if out.is_file() else {}
    for number, result in enumerate(stored_results(store)):
        name = f"{result.dataset}, {result.model}"
        done = [fold["fold"] for fold in result.record["folds"] if fold["status"] == "done"]
        if not done:
            continue
        if others := processors(result, store) - {processor()}:
            print(f"{name}: made on {', '.join(sorted(others))}", flush=True)
            continue
        if records.get(name, {}).get("evaluation") != result.record["key"]:
            fold = done[number * 7 % len(done)]
            records[name] = again(result, fold, store, arguments.data_mirror)
            write_atomic(out, f"{json.dumps(records, indent=1, sort_keys=True)}\n".encode())
        print(f"{name}: {'equal' if records[name]['equal'] else 'NOT EQUAL'}", flush=True)
