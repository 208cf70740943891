import pickle

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from kergnn import RandomWalkKernel
from kergnn.data import load_graphs, to_grakel
from kergnn.testing import enumerated_walk_kernel, kronecker_kernel

ORACLES = {"rw": kronecker_kernel, "rw-step": enumerated_walk_kernel}


def labelled_graphs(count, seed=0):
    graphs = []
    for i in range(count):
        graph = nx.gnp_random_graph(2 + i % 4, 0.6, seed=seed + i)
        for node in graph:
            graph.nodes[node]["kind"] = "ab"[(node + i) % 2]
        graphs.append(graph)
    return graphs


def dense(graph):
    A = torch.from_numpy(nx.to_numpy_array(graph))
    X = torch.tensor([[k == "a", k == "b"] for _, k in graph.nodes(data="kind")]).double()
    return A, X.reshape(len(graph), 2)


def by_oracle(left, right, kernel, p):
    return np.array(
        [[float(ORACLES[kernel](*dense(g), *dense(h), p)) for h in right] for g in left]
    )


@pytest.mark.parametrize("kernel", ["rw", "rw-step"])
def test_equals_the_oracle(kernel, monkeypatch):
    graphs, others = labelled_graphs(18), labelled_graphs(3, seed=50)
    K_p = np.stack([by_oracle(graphs + others, graphs + others, kernel, p) for p in range(4)])
    for num_steps, engine in ((0, "numba"), (2, "numba"), (3, "numba"), (3, "torch")):
        monkeypatch.setenv("KERGNN_ENGINE", engine)
        weights = 0.5 ** np.arange(num_steps + 1)
        K = np.tensordot(weights, K_p[: num_steps + 1], axes=1)
        walk = RandomWalkKernel(kernel=kernel, num_steps=num_steps, step_weights=weights)
        plain = clone(walk).set_params(normalize=False)
        np.testing.assert_allclose(plain.fit_transform(graphs), K[:18, :18], rtol=1e-12)
        np.testing.assert_allclose(plain.transform(graphs), K[:18, :18], rtol=1e-12)
        np.testing.assert_allclose(plain.transform(others), K[18:, :18], rtol=1e-12)
        scale = np.sqrt(np.diagonal(K))
        K = K / np.outer(scale, scale)
        np.testing.assert_allclose(walk.fit_transform(graphs), K[:18, :18], rtol=1e-12)
        np.testing.assert_allclose(walk.transform(others), K[18:, :18], rtol=1e-12)


def test_counts_the_walks_of_the_product_graph():
    # A triangle and a path of three nodes without labels: 9 pairs of nodes, 6 * 4 of edges.
    K = RandomWalkKernel(num_steps=1, step_weights=[0, 1], normalize=False)
    assert K.fit([nx.cycle_graph(3)]).transform([nx.path_graph(3)]).tolist() == [[24.0]]


@pytest.mark.parametrize("kernel", ["rw", "rw-step"])
def test_is_positive_semi_definite(kernel):
    K = RandomWalkKernel(kernel=kernel).fit_transform(load_graphs("MUTAG").select(torch.arange(60)))
    assert (K == K.T).all()
    np.testing.assert_allclose(np.diagonal(K), 1, rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-9


def test_empty_graphs_and_strange_labels():
    graphs = [*labelled_graphs(3), nx.Graph()]
    walk = RandomWalkKernel()
    K = walk.fit_transform(graphs)
    assert (K[3] == 0).all()
    assert (K[:, 3] == 0).all()
    assert np.isfinite(K).all()
    other = nx.path_graph(2)
    nx.set_node_attributes(other, "c", "kind")
    with pytest.warns(UserWarning, match="node label 'c'"):
        assert (walk.transform([other]) == 0).all()
    with pytest.raises(ValueError, match="kernel is 'drw': it must be one of 'rw', 'rw-step'"):
        RandomWalkKernel(kernel="drw").fit(graphs)
    for weights in ([1, 2], [1, 1, 1, -1], [1, 1, 1, np.nan]):
        with pytest.raises(ValueError, match="step_weights is"):
            RandomWalkKernel(step_weights=weights).fit(graphs)


def path_of(labels):
    graph = nx.path_graph(len(labels))
    nx.set_node_attributes(graph, dict(enumerate(labels)), "kind")
    return graph


@pytest.mark.filterwarnings("ignore:.*which the model does not know")
def test_strange_labels_count_in_what_a_graph_is_divided_by():
    graphs = [path_of(labels) for labels in ("AB", "BA", "AXXXX")]
    K = RandomWalkKernel().fit_transform(graphs)
    assert 0 < K[2, 0] < 0.05
    np.testing.assert_allclose(
        RandomWalkKernel().fit(graphs[:2]).transform(graphs[2:]), K[2:, :2], rtol=1e-12
    )


@pytest.mark.filterwarnings("ignore:.*which the model does not know")  # rare atoms
@pytest.mark.filterwarnings("ignore:graphs have attributes of edges")  # the bonds of MUTAG
def test_with_a_support_vector_machine():
    mutag = load_graphs("MUTAG").select(torch.arange(100))
    y = mutag.y.numpy()
    pipeline = make_pipeline(RandomWalkKernel(), SVC(kernel="precomputed", C=1000))
    scores = cross_val_score(pipeline, mutag, y, cv=2, error_score="raise")
    assert scores.mean() > max(y.mean(), 1 - y.mean()) + 0.05
    again = cross_val_score(pipeline, to_grakel(mutag), y, cv=2, error_score="raise")
    assert again.tolist() == scores.tolist()
    grid = {"randomwalkkernel__num_steps": [0, 2]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(mutag, y)
    assert search.best_params_["randomwalkkernel__num_steps"] == 2
    walk = search.best_estimator_[0]
    assert (pickle.loads(pickle.dumps(walk)).transform(mutag) == walk.transform(mutag)).all()
