"""The strict protocol from Python: settings selected in each fold, trials in two processes.

Two folds and few epochs, so that it takes seconds; ``kergnn evaluate MUTAG`` does all ten. Run it
twice with a folder (``python strict_evaluation.py STORE``): what is stored is not trained again.
"""

import sys
import tempfile
from pathlib import Path

from kergnn.evaluation import ResultStore, SearchSpace, Status, evaluate, make_executor, make_plan


def report(status: Status) -> None:
    print(f"\r{status.done} of {status.total} trials", end="", flush=True)


def main(store: Path) -> None:
    space = SearchSpace.from_values(
        {
            "num_layers": [1, 2, 3],  # a list is searched
            "hidden_channels": 16,  # a single value is fixed
            "epochs": 10,
        }
    )
    plan = make_plan("MUTAG", space, folds=2, repeats=2)
    record = evaluate(plan, ResultStore(store), make_executor("processes", workers=2), report)
    print()
    for fold in record["folds"]:
        chosen = {key: fold["config"][key] for key in record["searched"]}
        print(f"fold {fold['fold']}: {chosen}, test accuracy {fold['test']['accuracy']:.1%}")
    print(f"mean {record['mean']:.1%}, standard deviation {record['std']:.1%}")


# Worker processes import this file, so nothing may run when it is imported.
if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
