import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

import kergnn

WITHOUT_NUMBA = "import sys; sys.modules['numba'] = None\n"

USE = """
import os, sys, warnings
warnings.simplefilter("ignore")  # what other packages say
import networkx as nx, torch
from kergnn import EgoGraphs, KerGNN, KerGNNClassifier, egobuilder
from kergnn.baselines import gntk
from kergnn.data import as_graphs, returns
from kergnn.engine import topology
from kergnn.testing import random_graph

functions = (egobuilder._count, egobuilder._fill, gntk._theta, returns._fill, topology.cut)
compiled = [f for f in functions if getattr(f, "signatures", [])]

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    x, edge_index = random_graph(30, 0.2)
    ego = EgoGraphs.from_edge_index(edge_index, 30, num_hops=2, max_nodes=6)
    hub = EgoGraphs.from_edge_index(torch.tensor([[0] * 40, range(1, 41)]), 41, max_nodes=3)
    torch.manual_seed(0)
    net = KerGNN(x.size(1), 4, 2, num_layers=2).double()
    out = net(x, ego)
    out.sum().backward()

    shapes = [make(n) for n in range(3, 9) for make in (nx.cycle_graph, nx.path_graph)]
    os.environ["KERGNN_ENGINE"] = "torch"  # training would make much of the engines' rounding
    clf = KerGNNClassifier(epochs=2, random_state=0).fit(shapes, [0, 1] * 6)
    graphs = as_graphs(shapes)
    edges = graphs.simple_edges
    values = {
        "logits": out.detach(),
        "gradient": torch.cat([p.grad.flatten() for p in net.parameters()]),
        "probabilities": torch.from_numpy(clf.predict_proba(shapes)),
        "returns": returns.return_probabilities(edges, edges[0].bincount()),
        "tangents": torch.from_numpy(gntk.gram(graphs, torch.ones(graphs.num_nodes, 1))),
    }
names = ("index", "size", "hop", "degree", "neighbor")
torch.save(
    {
        "ego": [getattr(e, name) for e in (ego, hub) for name in names],
        "values": values,
        "warnings": [str(w.message) for w in caught],
        "compiled by importing": len(compiled),
        "fused": "kergnn.engine.fused" in sys.modules,
    },
    sys.argv[1],
)
"""


def run(code, *args, **environment):
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(
        command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
    )


def test_without_numba_all_is_the_same_with_one_warning(tmp_path):
    run(USE, tmp_path / "with.pt")
    run(WITHOUT_NUMBA + USE, tmp_path / "without.pt")
    compiled, plain = (torch.load(tmp_path / name) for name in ("with.pt", "without.pt"))
    assert compiled["compiled by importing"] == 0
    assert compiled["fused"]
    assert not plain["fused"]
    assert not compiled["warnings"]
    assert len(plain["warnings"]) == 1
    assert "Numba cannot be imported" in plain["warnings"][0]
    for ours, theirs in zip(plain["ego"], compiled["ego"], strict=True):
        assert torch.equal(ours, theirs)
    for name, value in plain["values"].items():
        expected = compiled["values"][name]
        torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10, msg=name)


def test_without_a_folder_for_the_cache_code_is_compiled_with_one_warning(tmp_path):
    package = tmp_path / "kergnn"
    shutil.copytree(Path(kergnn.__file__).parent, package, ignore=lambda *_: ["__pycache__"])
    for folder in [package, *(p for p in package.rglob("*") if p.is_dir())]:
        (folder / "__pycache__").touch()  # a file stops even root
    code = """
import torch
from kergnn import EgoGraphs
from kergnn.engine import fused
ego = EgoGraphs.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3)
print(fused.__file__, ego.size.tolist())
"""
    nowhere = str(package / "__init__.py" / "cache")
    places = {"NUMBA_CACHE_DIR": nowhere, "XDG_CACHE_HOME": nowhere, "HOME": nowhere}
    done = run(code, PYTHONPATH=str(tmp_path), **places)
    assert done.stdout.split(maxsplit=1) == [str(package / "engine/fused.py"), "[2, 3, 2]\n"]
    assert done.stderr.count("compiled code is not kept") == 1
    assert "no locator available" in done.stderr
