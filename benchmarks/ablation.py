r"""What single settings bring, without a look at any test part.

    python benchmarks/ablation.py ENZYMES --set num_layers=3 \
        --variant mixed "kernel=rw:16, gcn:16" --variant walks features=label+attr+walks

trains the settings of ``--set`` and every variant of them on some folds. The fold's validation part
is what they are compared on; so that it decides nothing else, the epoch is chosen on another tenth
of the training part. ``--refit`` trains to the last epoch on that tenth too, as
``kergnn evaluate --refit`` does with the validation part. Results go to
``results/ablation/NAME.json``, training after training; what is there is not run again.
"""

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from sklearn.model_selection import train_test_split
from torch import Tensor

from kergnn.config import RunConfig, parse_assignment
from kergnn.data import GraphSet, load_graphs
from kergnn.data.store import write_atomic
from kergnn.prediction import log_loss, metrics, predict_probabilities
from kergnn.preparation import (
    Development,
    ego_graphs,
    find_split,
    hide_test,
    prepare_trainer,
    resolve_config,
)

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("dataset")
parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
parser.add_argument("--variant", nargs="+", action="append", default=[], metavar="NAME KEY=VALUE")
parser.add_argument("--refit", action="store_true")
parser.add_argument("--folds", type=int, default=3)
parser.add_argument("--seeds", type=int, default=1)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--data-mirror", type=Path)
parser.add_argument("--out", type=Path, default=Path("results/ablation"))


def without_a_tenth(development: Development, seed: int) -> tuple[Development, Tensor]:
    """Choose the epoch on a tenth of the training part; returns the validation part as well."""
    train, stop = train_test_split(
        development.train.numpy(),
        test_size=0.1,
        stratify=development.graphs.y[development.train].numpy(),
        random_state=seed,
    )
    train, stop = (torch.from_numpy(part).sort().values for part in (train, stop))
    return replace(development, train=train, validation=stop), development.validation


def score(
    config: RunConfig, graphs: GraphSet, mirror: Path | None, refit: bool
) -> dict[str, float]:
    """Train one configuration and judge it by the validation part."""
    split = find_split(config, graphs, mirror)
    development = hide_test(graphs, ego_graphs(config, graphs), split)
    if refit:
        judges = development.validation
        development = replace(development, validation=judges[:0])
        config = config.replace({"keep_epoch": "last"})
    else:
        development, judges = without_a_tenth(development, config.fold)
    trainer, _ = prepare_trainer(config, development)
    trainer.run()
    probabilities = predict_probabilities(trainer.model, trainer.batches, judges)
    y = graphs.y[split.validation]
    return {
        "accuracy": round(metrics(probabilities, y)["accuracy"], 5),
        "loss": round(log_loss(probabilities, y), 5),
        "best_epoch": trainer.state.best_epoch,
        "seconds_per_epoch": round(
            statistics.median(row["seconds"] for row in trainer.state.history), 4
        ),
    }


def is_of(run: dict[str, Any], refit: bool, hashes: set[str]) -> bool:
    """Whether a stored run is one of these configurations, trained in this way."""
    return run["config_hash"] in hashes and run.get("refit", False) == refit


def main() -> None:
    """Run what is missing, fold by fold, and print the means of what was asked for."""
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    graphs = load_graphs(arguments.dataset, arguments.data_mirror)
    path = arguments.out / f"{graphs.name}.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    variants = {"plain": arguments.set} | {name: values for name, *values in arguments.variant}
    asked: dict[str, set[str]] = {name: set() for name in variants}
    for fold in range(arguments.folds):
        for seed in range(arguments.seeds):
            for name, values in variants.items():
                own = dict(map(parse_assignment, [*arguments.set, *values]))
                config = RunConfig(dataset=arguments.dataset, fold=fold, seed=seed).replace(own)
                config = resolve_config(config, graphs)
                asked[name].add(config.hash)
                if any(is_of(run, arguments.refit, {config.hash}) for run in runs):
                    continue
                found = score(config, graphs, arguments.data_mirror, arguments.refit)
                run = {"variant": name, "settings": own, "fold": fold, "seed": seed}
                run |= {"refit": True} if arguments.refit else {}
                runs.append({**run, "config_hash": config.hash, **found})
                text = json.dumps({"dataset": graphs.name, "runs": runs}, indent=1)
                write_atomic(path, f"{text}\n".encode())
    for name, hashes in asked.items():
        mine = [run for run in runs if is_of(run, arguments.refit, hashes)]
        accuracy, loss = (statistics.mean(run[key] for run in mine) for key in ("accuracy", "loss"))
        count = f"{len(mine)} training{'' if len(mine) == 1 else 's'}"
        print(f"{name:24s} {100 * accuracy:5.1f} %, loss {loss:.3f} ({count})")


if __name__ == "__main__":
    main()
