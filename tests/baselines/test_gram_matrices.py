"""Kernels against other implementations, and the machine that uses them."""

from collections import Counter
from itertools import pairwise

import grakel
import networkx as nx
import numpy as np
import pytest
import torch

from kergnn.baselines import baseline_names, get_baseline, gntk, pk, sp, wl
from kergnn.baselines.machine import KernelMachine
from kergnn.data import Features, GraphSet, load_graphs
from kergnn.testing import random_graph

KERNELS = [n for n in baseline_names() if get_baseline(n).kind == "kernel"]


@pytest.fixture(scope="module")
def mutag():
    graphs = load_graphs("MUTAG")
    x = Features.fit("label", graphs, torch.arange(graphs.num_nodes))(graphs)
    return graphs, x


def some_graphs(sizes, seed=0, num_labels=2):
    """Return random graphs, one-hot labels, and the graphs as networkx has them."""
    edges, first = [], 0
    for i, size in enumerate(sizes):
        edges.append(random_graph(size, 0.5, seed + i)[1] + first)
        first += size
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(num_labels, (first,), generator=generator)
    x = torch.nn.functional.one_hot(labels, num_labels).double()
    size = torch.tensor(sizes)
    edge_index = torch.cat(edges, dim=1)
    graphs = GraphSet("some", "graph", size, edge_index, torch.zeros(len(sizes)), ("a",))
    made, ptr = [], graphs.ptr.tolist()
    for a, b in pairwise(ptr):
        G = nx.Graph()
        G.add_nodes_from((v, {"label": int(labels[v])}) for v in range(a, b))
        G.add_edges_from((u, v) for u, v in edge_index.T.tolist() if a <= u < b)
        made.append(G)
    return graphs, x, made


def cosine(K):
    return K / np.sqrt(np.outer(np.diag(K), np.diag(K)))


def counter_gram(counters):
    K = [[sum(a[k] * b[k] for k in a) for b in counters] for a in counters]
    return np.array(K, dtype=float)


def wl_counters(graphs, num_iterations):
    """Count the colours of every graph after every refinement."""
    colors = [{v: ("0", G.nodes[v]["label"]) for v in G} for G in graphs]
    counters = [Counter(c.values()) for c in colors]
    for i in range(1, num_iterations + 1):
        colors = [
            {v: (str(i), c[v], tuple(sorted(c[u] for u in G[v]))) for v in G}
            for G, c in zip(graphs, colors, strict=True)
        ]
        for counter, c in zip(counters, colors, strict=True):
            counter.update(c.values())
    return counters


def sp_counters(graphs):
    counters = []
    for G in graphs:
        lengths = dict(nx.all_pairs_shortest_path_length(G))
        label = nx.get_node_attributes(G, "label")
        counters.append(
            Counter(
                (label[u], label[v], d)
                for u, row in lengths.items()
                for v, d in row.items()
                if u != v
            )
        )
    return counters


def test_wl_counts_colours():
    graphs, x, made = some_graphs([5, 4, 7, 1, 6])
    for num_iterations in (1, 3):
        K = wl.gram(graphs, x, num_iterations, normalize=False)
        expected = counter_gram(wl_counters(made, num_iterations))
        np.testing.assert_allclose(K, expected)
        np.testing.assert_allclose(wl.gram(graphs, x, num_iterations), cosine(expected))


def test_sp_counts_pairs_at_a_distance():
    graphs, x, made = some_graphs([5, 4, 7, 3, 6])
    expected = counter_gram(sp_counters(made))
    np.testing.assert_allclose(sp.gram(graphs, x, normalize=False), expected)
    np.testing.assert_allclose(sp.gram(graphs, x), cosine(expected))


def pk_counters(graphs, num_iterations):
    """Count the distributions of labels after every propagation, rounded instead of hashed."""
    counters = []
    for G in graphs:
        A = nx.to_numpy_array(G)
        step = A / np.maximum(A.sum(1, keepdims=True), 1)
        P = np.eye(2)[list(nx.get_node_attributes(G, "label").values())]
        counter = Counter()
        for t in range(num_iterations + 1):
            counter.update((t, *row) for row in P.round(9).tolist())
            P = step @ P
        counters.append(counter)
    return counters


def test_pk_counts_distributions_of_labels():
    """The bins are so narrow that only equal distributions share one."""
    graphs, x, made = some_graphs([5, 4, 7, 3, 6])
    for num_iterations in (1, 3):
        K = pk.gram(graphs, x, num_iterations, bin_width=1e-7, normalize=False)
        np.testing.assert_allclose(K, counter_gram(pk_counters(made, num_iterations)))


def grakel_graphs(graphs, labels):
    """Return MUTAG as GraKeL's own format, from adjacency matrices."""
    made = []
    for data in graphs.to_data_list(labels):
        A = np.zeros((data.num_nodes, data.num_nodes))
        A[data.edge_index[0], data.edge_index[1]] = 1
        made.append([A, dict(enumerate(data.x.tolist())), {}])
    return made


@pytest.mark.parametrize(
    ("gram", "options", "theirs"),
    [
        (wl.gram, {"num_iterations": 4}, grakel.WeisfeilerLehman(n_iter=4, normalize=True)),
        (sp.gram, {}, grakel.ShortestPath(normalize=True)),
        (
            pk.gram,
            {"num_iterations": 4, "bin_width": 0.1, "seed": 3},
            grakel.Propagation(t_max=5, w=0.1, random_state=3, normalize=True),
        ),
    ],
    ids=["wl", "sp", "pk"],
)
def test_mutag_gives_what_grakel_gives(mutag, gram, options, theirs):
    graphs, x = mutag
    K = gram(graphs, x, **options)
    assert K.shape == (188, 188)
    expected = theirs.fit_transform(grakel_graphs(graphs, graphs.labels[:, 0]))
    np.testing.assert_allclose(K, expected, rtol=1e-9, atol=1e-12)
    assert 0.01 < expected.std() < 1


def literal_gntk(A, X, B, Y, num_layers, mlp_layers, jumping_knowledge, scale):
    """The kernel of two graphs, with Kronecker products and without shortcuts."""

    def relu_layer(S, aa, bb):
        norm = np.sqrt(np.outer(aa, bb))
        angle = np.arccos(np.clip(S / norm, -1, 1))
        new = norm * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / np.pi
        return new, (np.pi - angle) / np.pi

    def neighbors(M):
        M = M + np.eye(len(M))
        return M / M.sum(1, keepdims=True) if scale == "degree" else M

    PA, PB = neighbors(A), neighbors(B)
    SAA, SAB, SBB = X @ X.T, X @ Y.T, Y @ Y.T
    T = SAB
    total = [T.sum()]
    for _ in range(num_layers):
        SAA = (np.kron(PA, PA) @ SAA.reshape(-1)).reshape(SAA.shape)
        SBB = (np.kron(PB, PB) @ SBB.reshape(-1)).reshape(SBB.shape)
        SAB = (np.kron(PA, PB) @ SAB.reshape(-1)).reshape(SAB.shape)
        T = (np.kron(PA, PB) @ T.reshape(-1)).reshape(T.shape)
        for _ in range(mlp_layers):
            a, b = np.diag(SAA).copy(), np.diag(SBB).copy()
            SAB, slope = relu_layer(SAB, a, b)
            SAA, SBB = relu_layer(SAA, a, a)[0], relu_layer(SBB, b, b)[0]
            T = T * slope + SAB
        total.append(T.sum())
    return sum(total) if jumping_knowledge else total[-1]


@pytest.mark.parametrize("jumping_knowledge", [True, False])
@pytest.mark.parametrize("scale", ["degree", "uniform"])
@pytest.mark.parametrize(("num_layers", "mlp_layers"), [(1, 1), (3, 2)])
def test_gntk_equals_the_literal_kernel(num_layers, mlp_layers, scale, jumping_knowledge):
    graphs, x, made = some_graphs([5, 3, 6, 1, 4], seed=2)
    x = x + 0.3 * random_graph(len(x), 0.0, 5, x.size(1))[0]
    options = num_layers, mlp_layers, jumping_knowledge, scale
    K = gntk.gram(graphs, x, *options, normalize=False)
    parts = torch.split(x, graphs.size.tolist())
    dense = [(nx.to_numpy_array(G), X.numpy()) for G, X in zip(made, parts, strict=True)]
    expected = [[literal_gntk(*a, *b, *options) for b in dense] for a in dense]
    np.testing.assert_allclose(K, expected, rtol=1e-7)


@pytest.mark.parametrize("name", KERNELS)
def test_a_gram_matrix_is_symmetric_and_positive(name):
    graphs, x, _ = some_graphs([5, 3, 6, 1, 4, 0, 7], seed=4)
    K = get_baseline(name).load()(graphs, x)
    assert K.dtype == np.float64
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-9
    assert (K[5] == 0).all()  # a graph without nodes
    whole = [0, 2, 4, 6]
    if name == "gckn-unsupervised":
        np.testing.assert_allclose(np.diag(K).mean(), 1)
        assert np.diag(K)[whole].std() > 0.1  # larger graphs stay larger
    else:
        np.testing.assert_allclose(np.diag(K)[whole], 1)


@pytest.mark.parametrize("name", KERNELS)
def test_a_gram_matrix_is_the_same_again_and_tells_its_progress(name):
    graphs, x, _ = some_graphs([5, 3, 6], seed=4)
    calls = []
    function = get_baseline(name).load()
    K = function(graphs, x, progress=lambda done, total: calls.append((done, total)))
    assert calls == sorted(calls)
    assert calls[-1][0] == calls[-1][1]
    np.testing.assert_array_equal(function(graphs, x), K)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_takes_edges_once_whatever_way_they_are_given(name):
    graphs, x, _ = some_graphs([5, 3, 6], seed=4)
    one_way = graphs.edge_index[:, graphs.edge_index[0] < graphs.edge_index[1]]
    loops = torch.arange(4).expand(2, -1)
    given = torch.cat([one_way, one_way[:, :3], loops], dim=1)
    other = GraphSet("other", "graph", graphs.size, given, graphs.y, ("a",))
    function = get_baseline(name).load()
    np.testing.assert_allclose(function(other, x), function(graphs, x), rtol=1e-12)


def test_a_machine_learns_mutag(mutag):
    graphs, x = mutag
    K, y = wl.gram(graphs, x, 3), graphs.y.numpy()
    train, test = np.arange(188) % 4 > 0, np.arange(188) % 4 == 0
    machine = KernelMachine(2, C=10.0).fit(K[np.ix_(train, train)], y[train])
    predicted = machine.predict(K[np.ix_(test, train)])
    assert (predicted == y[test]).mean() > 0.75
    direct = machine.machine.predict(K[np.ix_(test, train)])
    np.testing.assert_array_equal(predicted, direct)


def test_a_machine_gives_a_score_to_every_class():
    X = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat(np.eye(3) * 4, 20, axis=0)
    y = np.repeat([0, 1, 3], 20)  # nobody has seen class 2
    machine = KernelMachine(4).fit(X @ X.T, y)
    scores = machine.scores(X @ X.T)
    assert scores.shape == (60, 4)
    assert (scores[:, 2] == -np.inf).all()
    assert (machine.predict(X @ X.T) == y).mean() > 0.9
    np.testing.assert_array_equal(machine.predict(X @ X.T), machine.machine.predict(X @ X.T))


def test_a_machine_with_one_class_knows_only_that_one():
    machine = KernelMachine(2).fit(np.eye(3), np.ones(3, dtype=np.int64))
    assert machine.predict(np.eye(3)).tolist() == [1, 1, 1]


def test_a_machine_refuses_a_price_of_zero():
    with pytest.raises(ValueError, match="C is 0"):
        KernelMachine(2, C=0)
