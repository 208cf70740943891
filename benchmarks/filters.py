r"""Train, draw the most important filters, and count the rings and stars among them.

    python benchmarks/filters.py MUTAG
    python benchmarks/filters.py MUTAG --name MUTAG-ego --set filter_init=ego num_hops=3 \
        max_nodes=16 filter_size=8
    python benchmarks/filters.py REDDIT-BINARY --name reddit --seeds 0 --set epochs=8
    python benchmarks/filters.py REDDIT-BINARY --name reddit-ego --seeds 0 --set epochs=8 \
        filter_init=ego

writes ``results/explain/filters-NAME.json``: for every seed and layer how many of the filters have
which shape after thresholding, of all filters, of the most important ones, and of all at the start
of the training, and how many occur in the data as a subgraph. The picture of the first seed's most
important filters is written to ``docs/images/NAME-filters.svg``.
"""

import argparse
import json
import tempfile
from pathlib import Path

from kergnn.config import RunConfig, load_config, parse_assignment
from kergnn.data.store import write_atomic
from kergnn.explain import (
    count_shapes,
    draw_filters,
    filter_graphs,
    filter_importance,
    occurs,
    ranked,
    shape,
)
from kergnn.explain.drawing import to_svg
from kergnn.explain.matches import structures
from kergnn.explain.subject import open_run
from kergnn.preparation import hide_test, prepare_trainer
from kergnn.runs import start_run

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("dataset")
parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
parser.add_argument("--threshold", type=float, default=0.5)
parser.add_argument("--most", type=int, default=10, help="how many filters count as important")
parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE")
parser.add_argument("--name", help="of the files; by default that of the data set")
parser.add_argument("--data-mirror", type=Path)
parser.add_argument("--out", type=Path, default=Path("results/explain"))
parser.add_argument("--images", type=Path, default=Path("docs/images"))
arguments = parser.parse_args()
name = (arguments.name or arguments.dataset).lower()

runs = []
for seed in arguments.seeds:
    config = RunConfig(dataset=arguments.dataset, seed=seed)
    config = config.replace(dict(map(parse_assignment, arguments.set)))
    with tempfile.TemporaryDirectory() as folder:
        results = start_run(config, Path(folder) / "run", arguments.data_mirror)
        subject = open_run(Path(folder) / "run", arguments.data_mirror)
        config = load_config(Path(folder) / "run" / "config.toml")
    importance = filter_importance(
        subject.model, subject.batches, subject.split.validation, config.metric
    )
    trained = filter_graphs(subject.model, arguments.threshold)
    development = hide_test(subject.graphs, subject.batches.ego, subject.split)
    start = filter_graphs(prepare_trainer(config, development)[0].model, arguments.threshold)
    graphs = structures(subject.graphs, subject.split.train.tolist())
    layers = []
    for number, filters in enumerate(trained):
        best = ranked(importance[number])[: arguments.most]
        chosen = [filters[one.index] for one in best]
        filled = [graph for graph in filters if graph.number_of_edges()]
        layers.append(
            {
                "layer": number + 1,
                "filters": len(filters),
                "all": count_shapes(filters),
                "important": count_shapes(chosen),
                "start": count_shapes(start[number]),
                "occur": sum(occurs(graph, graphs) for graph in filled),
                "with_edges": len(filled),
                "most_important": [
                    {
                        "filter": one.index + 1,
                        "shape": str(shape(filters[one.index])),
                        "drop": round(one.drop, 4),
                        "contribution": round(one.contribution, 4),
                    }
                    for one in best
                ],
            }
        )
        print(f"{arguments.dataset} seed {seed} layer {number + 1}: {layers[-1]['important']}")
    runs.append({"seed": seed, "test": results["test"], "layers": layers})
    if seed == arguments.seeds[0]:
        figure = draw_filters(
            subject.model,
            arguments.threshold,
            subject.one_hot_names,
            importance,
            subject.one_hot_frequency,
            most=8,
        )
        write_atomic(arguments.images / f"{name}-filters.svg", to_svg(figure))

summary = {
    "dataset": arguments.dataset,
    "threshold": arguments.threshold,
    "important": arguments.most,
    "config": config.replace({"seed": 0}).to_toml().splitlines(),
    "runs": runs,
}
path = arguments.out / f"filters-{name}.json"
write_atomic(path, (json.dumps(summary, indent=1) + "\n").encode())
print(f"written to {path}")
