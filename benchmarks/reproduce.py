"""Whether what is stored still comes out: trainings of every evaluation in the tables, again.

    python benchmarks/reproduce.py

trains the first run of a fold, another one from evaluation to evaluation, and compares every digit
as ``kergnn reproduce`` does; ``--folds N`` does so for N folds of each. Only runs are made again
whose record names this kind of processor, or none. Those of an Intel processor come out on others
that have its instructions too, where MKL takes the same code (``intel.c``)::

    cc -shared -fPIC -o /tmp/intel.so benchmarks/intel.c
    export LD_PRELOAD=/tmp/intel.so OPENBLAS_CORETYPE=SKYLAKEX
    python benchmarks/reproduce.py --made-on "Intel(R) Xeon(R) Processor"

A processor's name does not tell all. Of two that are called AMD EPYC, OpenBLAS takes its code for
SkylakeX on one and that for Haswell on another: models that multiply with numpy or scipy come out
on the other once ``OPENBLAS_CORETYPE`` names the code.

Results go to ``results/reproduced.json``, training after training; what is there is not run again,
unless it was not equal by other code of a library.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from kergnn.data.store import write_atomic
from kergnn.evaluation import ResultStore
from kergnn.evaluation.reproduce import reproduce
from kergnn.evaluation.results import Result, stored_results
from kergnn.versions import library_code, processor, software_versions

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--store", type=Path, default=Path("results"))
parser.add_argument("--data-mirror", type=Path)
parser.add_argument("--out", type=Path, default=Path("results/reproduced.json"))
parser.add_argument("--folds", type=int, default=1, help="how many folds of every evaluation")
parser.add_argument("--made-on", default=processor(), help="processor of the records")
parser.add_argument("--models", nargs="*", help="which models; by default all")


def folds_of(result: Result, store: ResultStore, made_on: str) -> list[int]:
    """Return the finished folds whose first run was made on a processor, or does not tell."""
    found = []
    for fold in result.record["folds"]:
        trial = store.trial(result.dataset, fold["assessment"][0]) if fold["assessment"] else None
        if fold["status"] == "done" and trial:
            named = trial["measured"].get("processor")
            if named == made_on or (named is None and made_on == processor()):
                found.append(fold["fold"])
    return found


def known(out: Path) -> dict[str, Any]:
    """Return what was found before, in this process or another."""
    return json.loads(out.read_text()) if out.is_file() else {}


def of_evaluation(records: dict[str, Any], name: str, key: str) -> dict[str, Any]:
    """Return the folds of an evaluation in the records; those of an older one are dropped."""
    if records.get(name, {}).get("evaluation") != key:
        records[name] = {"evaluation": key, "folds": {}}
    return records[name]["folds"]


def is_settled(found: dict[str, Any] | None) -> bool:
    """Whether a fold need not be trained again."""
    return found is not None and (found["equal"] or found.get("library_code") == library_code())


def again(result: Result, fold: int, store: ResultStore, mirror: Path | None) -> dict[str, Any]:
    """Train run 0 of a fold again; returns what was found."""
    found = reproduce(store, result.dataset, result.model, fold, 0, mirror)
    return {
        "equal": found.equal,
        "differs": [row.figure for row in found.rows if not row.equal],
        "processor": processor(),
        "library_code": library_code(),
        "source": software_versions()["source"],
    }


if __name__ == "__main__":
    arguments = parser.parse_args()
    store, out = ResultStore(arguments.store), arguments.out
    for number, result in enumerate(stored_results(store)):
        if arguments.models and result.model not in arguments.models:
            continue
        folds = folds_of(result, store, arguments.made_on)
        name, key = f"{result.dataset}, {result.model}", result.record["key"]
        first = number * 7 % max(len(folds), 1)
        there = of_evaluation(known(out), name, key)
        order = folds[first:] + folds[:first]
        missing = [fold for fold in order if not is_settled(there.get(str(fold)))]
        for fold in missing[: max(arguments.folds - len(folds) + len(missing), 0)]:
            found = again(result, fold, store, arguments.data_mirror)
            records = known(out)
            there = of_evaluation(records, name, key)
            there[str(fold)] = {"made_on": arguments.made_on, **found}
            write_atomic(out, f"{json.dumps(records, indent=1, sort_keys=True)}\n".encode())
            print(f"{name}, fold {fold}: {'equal' if found['equal'] else 'NOT EQUAL'}", flush=True)
