"""Train with the default settings on some folds of a data set and store what came out.

    python benchmarks/train.py MUTAG --folds 0 1 2 3 4 5 6 7 8 9
    python benchmarks/train.py PROTEINS --folds 0 --data-mirror DIR

writes ``results/train/NAME.json``: for every fold the test figures, the selected epoch and the
seconds, and the mean over the folds. These are single runs at default settings, no selection of
hyper-parameters.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from kergnn.config import RunConfig, load_config, parse_assignment
from kergnn.data.store import write_atomic
from kergnn.runs import start_run

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("dataset")
parser.add_argument("--folds", type=int, nargs="+", default=list(range(10)))
parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
parser.add_argument("--data-mirror", type=Path)
parser.add_argument("--out", type=Path, default=Path("results/train"))
arguments = parser.parse_args()

folds = []
for fold in arguments.folds:
    config = RunConfig(dataset=arguments.dataset, fold=fold)
    config = config.replace(dict(map(parse_assignment, arguments.set)))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        results = start_run(config, out, arguments.data_mirror)
        record = json.loads((out / "run.json").read_text())
        settings = load_config(out / "config.toml")
    folds.append({"fold": fold, "split": record["split"], **results})
    print(f"{arguments.dataset} fold {fold}: test accuracy {results['test']['accuracy']:.1%}")

accuracies = [f["test"]["accuracy"] for f in folds]
summary = {
    "dataset": arguments.dataset,
    "features": settings.features,
    "fingerprint": record["fingerprint"],
    "mean_test_accuracy": statistics.mean(accuracies),
    "std_test_accuracy": statistics.pstdev(accuracies),
    "config": settings.replace({"fold": 0}).to_toml().splitlines(),
    "versions": record["versions"],
    "folds": folds,
}
path = arguments.out / f"{arguments.dataset}.json"
write_atomic(path, (json.dumps(summary, indent=1) + "\n").encode())
print(f"mean {summary['mean_test_accuracy']:.1%}, written to {path}")
