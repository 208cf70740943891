"""Whether what is stored still comes out: trainings of every evaluation in the tables, again.

    python benchmarks/reproduce.py

trains the first run of a fold, another one from evaluation to evaluation, and compares every digit
as ``kergnn reproduce`` does; ``--folds N`` does so for N folds of each. Only runs are made again
whose record names this kind of processor, or none. Those of an Intel processor come out on others
that have its instructions too, where MKL takes the same code (``intel.c``)::

    cc -shared -fPIC -o /tmp/intel.so benchmarks/intel.c
    export LD_PRELOAD=/tmp/intel.so OPENBLAS_CORETYPE=SKYLAKEX
    python benchmarks/reproduce.py --made-on "Intel(R) Xeon(R) Processor"

A processor's name does not tell all: libraries also choose code by variables of the environment,
such as ``OPENBLAS_CORETYPE``. Models that multiply with numpy or scipy come out once it names the
code that was taken for their records.

Results go to ``results/reproduced.json``, training after training; what is there is not run again,
unless it was not equal by other code of a library.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from kergnn.data.store import write_atomic
from kergnn.evaluation import ResultStore
from kergnn.evaluation.reproduce import Reproduction, reproduce
from kergnn.evaluation.results import Result, stored_results
from kergnn.locks import Locks
from kergnn.versions import library_code, processor, software_versions

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--store", type=Path, default=Path("results"))
parser.add_argument("--data-mirror", type=Path)
parser.add_argument("--out", type=Path, default=Path("results/reproduced.json"))
parser.add_argument("--folds", type=int, default=1, help="how many folds of every evaluation")
parser.add_argument("--made-on", default=processor(), help="processor of the records")
parser.add_argument("--models", nargs="*", help="which models; by default all")


def folds_of(result: Result, store: ResultStore, made_on: str) -> dict[int, str | None]:
    """Return the processor of the first run of finished folds: the named one, or none if untold."""
    found = {}
    for fold in result.record["folds"]:
        trial = store.trial(result.dataset, fold["assessment"][0]) if fold["assessment"] else None
        if fold["status"] == "done" and trial:
            named = trial["measured"].get("processor")
            if named == made_on or (named is None and made_on == processor()):
                found[fold["fold"]] = named
    return found


def known(out: Path) -> dict[str, Any]:
    """Return what was found before, in this process or another."""
    return json.loads(out.read_text()) if out.is_file() else {}


def folds_in(records: dict[str, Any], name: str, key: str) -> dict[str, Any]:
    """Return the folds of an evaluation in the records; those of an older one are dropped."""
    if records.get(name, {}).get("evaluation") != key:
        records[name] = {"evaluation": key, "folds": {}}
    return records[name]["folds"]


def is_settled(found: dict[str, Any] | None) -> bool:
    """Whether a fold need not be trained again."""
    return found is not None and (found["equal"] or found.get("library_code") == library_code())


def add(out: Path, name: str, found: Reproduction, made_on: str | None) -> None:
    """Write what was found down; other processes may do so too."""
    with Locks(out.with_name(".lock")) as locks:
        locks.claim("0", wait=True)
        records = known(out)
        folds_in(records, name, found.evaluation)[str(found.fold)] = {
            "made_on": made_on,
            "equal": found.equal,
            "differs": [row.figure for row in found.rows if not row.equal],
            "processor": processor(),
            "library_code": library_code(),
            "source": software_versions()["source"],
        }
        write_atomic(out, f"{json.dumps(records, indent=1, sort_keys=True)}\n".encode())


if __name__ == "__main__":
    arguments = parser.parse_args()
    store, out = ResultStore(arguments.store), arguments.out
    for number, result in enumerate(stored_results(store)):
        if arguments.models and result.model not in arguments.models:
            continue
        made_on = folds_of(result, store, arguments.made_on)
        name, key = f"{result.dataset}, {result.model}", result.record["key"]
        there = folds_in(known(out), name, key)
        order = list(made_on)
        first = number * 7 % max(len(order), 1)
        order = order[first:] + order[:first]
        missing = [fold for fold in order if not is_settled(there.get(str(fold)))]
        for fold in missing[: max(arguments.folds - len(order) + len(missing), 0)]:
            found = reproduce(store, result.dataset, result.model, fold, 0, arguments.data_mirror)
            if found.evaluation != key:
                print(f"{name}: another evaluation counts by now", flush=True)
                break
            add(out, name, found, made_on[fold])
            print(f"{name}, fold {fold}: {'equal' if found.equal else 'NOT EQUAL'}", flush=True)
