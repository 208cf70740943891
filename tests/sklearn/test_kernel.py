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
        graph = nx.gnp_random_graph(2 + i % 5, 0.6, seed=seed + i)
        for node in graph:
            graph.nodes[node]["kind"] = "ab"[(node + i) % 2]
        graphs.append(graph)
    return graphs


def dense(graph):
    A = torch.from_numpy(nx.to_numpy_array(graph))
    X = torch.tensor([[k == "a", k == "b"] for _, k in graph.nodes(data="kind")]).double()
    return A, X.reshape(len(graph), 2)


def by_oracle(left, right, kernel, weights):
    return np.array(
        [
            [
                sum(w * float(ORACLES[kernel](*dense(g), *dense(h), p)) for p, w in weights)
                for h in right
            ]
            for g in left
        ]
    )


@pytest.mark.parametrize("kernel", ["rw", "rw-step"])
@pytest.mark.parametrize("engine", ["numba", "torch"])
def test_equals_the_oracle(kernel, engine, monkeypatch):
    monkeypatch.setenv("KERGNN_ENGINE", engine)
    graphs, others = labelled_graphs(20), labelled_graphs(3, seed=50)
    for num_steps in (0, 2, 3):
        weights = [(p, 0.5**p) for p in range(num_steps + 1)]
        walk = RandomWalkKernel(
            kernel=kernel, num_steps=num_steps, step_weights=[w for _, w in weights]
        )
        plain = clone(walk).set_params(normalize=False)
        expected = by_oracle(graphs, graphs, kernel, weights)
        np.testing.assert_allclose(plain.fit_transform(graphs), expected, rtol=1e-12)
        np.testing.assert_allclose(plain.transform(graphs), expected, rtol=1e-12)
        cross = by_oracle(others, graphs, kernel, weights)
        np.testing.assert_allclose(plain.transform(others), cross, rtol=1e-12)
        scale = np.sqrt(np.diagonal(expected))
        K = walk.fit_transform(graphs)
        np.testing.assert_allclose(K, expected / np.outer(scale, scale), rtol=1e-12)
        own = np.sqrt(np.diagonal(by_oracle(others, others, kernel, weights)))
        np.testing.assert_allclose(walk.transform(others), cross / np.outer(own, scale), rtol=1e-12)


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


def test_with_a_support_vector_machine():
    mutag = load_graphs("MUTAG")
    y = mutag.y.numpy()
    pipeline = make_pipeline(RandomWalkKernel(), SVC(kernel="precomputed", C=10))
    scores = cross_val_score(pipeline, mutag, y, cv=3, error_score="raise")
    assert scores.mean() > 0.8
    again = cross_val_score(pipeline, to_grakel(mutag), y, cv=3, error_score="raise")
    assert again.tolist() == scores.tolist()
    grid = {"randomwalkkernel__num_steps": [0, 2]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(mutag, y)
    assert search.best_params_["randomwalkkernel__num_steps"] == 2
    walk = search.best_estimator_[0]
    assert (pickle.loads(pickle.dumps(walk)).transform(mutag) == walk.transform(mutag)).all()
