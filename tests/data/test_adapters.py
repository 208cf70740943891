import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data, HeteroData

from kergnn.data import (
    DataError,
    Features,
    as_graphs,
    load_graphs,
    to_adjacency,
    to_grakel,
    to_networkx,
    to_pyg,
    to_smiles,
)
from kergnn.data.adapters.values import _warn_once

# A triangle with a tail, then a node of its own.
EDGES = [(0, 1), (1, 2), (0, 2), (2, 3)]
ELEMENTS = ["C", "C", "O", "N", "C"]


def molecule():
    graph = nx.Graph(y="bad")
    for node, element in enumerate(ELEMENTS):
        graph.add_node(f"a{node}", element=element, charge=node / 2, position=[node, -1.5])
    graph.add_edges_from((f"a{a}", f"a{b}") for a, b in EDGES)
    return graph


def dense(edges, n):
    matrix = np.zeros((n, n))
    for a, b in edges:
        matrix[a, b] = matrix[b, a] = 1
    return matrix


def same(left, right):
    """Whether two sets hold the same graphs, however their edges are written."""
    tensors = ("size", "simple_edges", "y", "labels", "attributes")
    for name in tensors:
        a, b = getattr(left, name), getattr(right, name)
        assert (a is None) == (b is None), name
        assert a is None or torch.equal(a, b), name
    assert left.label_names == right.label_names
    assert left.class_names == right.class_names
    return True


def test_networkx_node_attributes_by_name():
    graphs = as_graphs([molecule()])
    assert graphs.size.tolist() == [5]
    assert graphs.edge_index.T.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    assert (graphs.label_columns, graphs.label_names) == (("element",), (("C", "N", "O"),))
    assert graphs.labels.flatten().tolist() == [0, 0, 2, 1, 0]
    assert graphs.attribute_columns == ("charge", "position", "position")
    assert graphs.attributes[3].tolist() == [1.5, 3, -1.5]
    assert (graphs.class_names, graphs.y.tolist()) == (("bad",), [0])
    names = Features.fit("label+attr", graphs, torch.arange(5)).names
    assert names == ["C", "N", "O", "charge", "position0", "position1"]

    chosen = as_graphs([molecule()], node_attributes=["position"])
    assert chosen.labels is None
    assert chosen.attribute_columns == ("position", "position")
    nothing = as_graphs([molecule()], node_labels=[])
    assert (nothing.labels, nothing.attributes) == (None, None)


def test_integers_and_booleans_are_labels_unless_named_otherwise():
    graph = nx.Graph()
    graph.add_node("a", number=6, aromatic=True, mixed=1)
    graph.add_node("b", number=np.int64(10), aromatic=np.bool_(False), mixed=0.5)
    graphs = as_graphs(graph)
    assert graphs.label_names == (("6", "10"), ("0", "1"))
    assert graphs.label_columns == ("number", "aromatic")
    assert graphs.attribute_columns == ("mixed",)
    names = Features.fit("label", graphs, torch.arange(2)).names
    assert names == ["number=6", "number=10", "aromatic=0", "aromatic=1"]
    assert as_graphs(graph, node_attributes="number").attributes.tolist() == [[6], [10]]


def test_networkx_round_trip():
    graph = molecule()
    graph.add_edge("a1", "a1")  # a loop stays in the data, though it does not count
    back = to_networkx(as_graphs([nx.Graph(y="good"), graph]))
    assert (back[0].number_of_nodes(), back[0].graph) == (0, {"y": "good"})
    expected = nx.convert_node_labels_to_integers(graph)
    assert dict(back[1].nodes(data=True)) == dict(expected.nodes(data=True))
    assert {frozenset(e) for e in back[1].edges} == {frozenset(e) for e in expected.edges}
    assert back[1].graph == {"y": "bad"}
    assert same(as_graphs(back), as_graphs([nx.Graph(y="good"), graph]))


def test_classes_of_nodes():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: 1, 2: 0}, "y")
    graphs = as_graphs(graph, task="node")
    assert (graphs.y.tolist(), graphs.labels) == ([1, -1, 0], None)
    assert dict(to_networkx(graphs)[0].nodes(data="y")) == {0: 1, 1: None, 2: 0}
    given = as_graphs([nx.path_graph(2), nx.path_graph(1)], ["b", None, "a"], task="node")
    assert given.y.tolist() == [1, -1, 0]
    back = to_networkx(given)
    assert [dict(graph.nodes(data="y")) for graph in back] == [{0: "b", 1: None}, {0: "a"}]


def test_multigraphs_count_an_edge_once():
    graph = nx.MultiGraph([(0, 1), (0, 1), (1, 2)])
    assert as_graphs(graph).simple_edges.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


@pytest.mark.parametrize("seed", range(3))
def test_all_kinds_agree(seed):
    made = [nx.gnp_random_graph(n, 0.4, seed=seed + n) for n in (1, 7, 5)]
    graphs = as_graphs(made, [0, 1, 0])
    matrices = [nx.to_numpy_array(g) for g in made]
    edges = [list(g.edges) for g in made]
    kinds = {
        "arrays": matrices,
        "lists": [m.tolist() for m in matrices],
        "booleans": [m.astype(bool) for m in matrices],
        "tensors": [torch.from_numpy(m) for m in matrices],
        "sparse": [sp.csr_matrix(m) for m in matrices],
        "sparse arrays": [sp.coo_array(m) for m in matrices],
        "dictionaries": [[{a: list(g[a]) for a in g}] for g in made],
        "weighted dictionaries": [[{a: dict.fromkeys(g[a], 1.0) for a in g}] for g in made],
        "pyg": [
            Data(edge_index=torch.tensor(e, dtype=torch.long).reshape(-1, 2).T, num_nodes=len(g))
            for e, g in zip(edges, made, strict=True)
        ],
        "graph set": graphs,
        "single sets": [graphs[i] for i in range(3)],
        "iterator": iter(made),
        "tuple": tuple(made),
        "object array": np.array([*made, None], dtype=object)[:3],
    }
    for name, kind in kinds.items():
        assert same(as_graphs(kind, [0, 1, 0]), graphs), name
    assert same(as_graphs(np.stack([matrices[1]] * 2)), as_graphs([made[1]] * 2))
    assert same(as_graphs(Batch.from_data_list(kinds["pyg"])), as_graphs(made))


def test_adjacency_round_trip():
    matrices = [dense(EDGES, 5), np.zeros((0, 0)), np.eye(2)]
    back = to_adjacency(as_graphs(matrices))
    for matrix, other in zip(matrices, back, strict=True):
        assert np.array_equal(matrix, other.toarray())


def test_pyg_round_trip():
    x = torch.tensor([[0.5, 1], [2, 3], [4, 5]])
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = [
        Data(x=x, edge_index=edge_index, y=torch.tensor([3])),
        Data(x=x[:1], edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([7])),
    ]
    graphs = as_graphs(data)
    assert (graphs.class_names, graphs.attribute_columns) == (("3", "7"), ("x", "x"))
    for before, after in zip(data, to_pyg(graphs), strict=True):
        assert torch.equal(before.x, after.x.float())
        assert torch.equal(before.edge_index, after.edge_index)
        assert torch.equal(before.y, after.y)

    whole = [Data(x=torch.tensor([[6], [8]]), edge_index=torch.tensor([[0], [1]]))]
    assert as_graphs(whole).label_names == (("6", "8"),)
    assert to_pyg(as_graphs(whole))[0].x.tolist() == [6, 8]
    named = to_pyg(as_graphs([molecule()], node_labels="element"))[0]
    assert named.element == ELEMENTS
    for names in ("element", None):
        again = as_graphs([named], ["bad"], node_labels=names)
        assert same(again, as_graphs([molecule()], node_labels="element"))
    several = as_graphs([molecule(), molecule()], [0, 1])
    assert same(as_graphs(Batch.from_data_list(to_pyg(several))), several)


def test_pyg_classes_that_are_not_known_stay_so():
    paths = [nx.path_graph(2), nx.path_graph(1), nx.path_graph(2)]
    graphs = as_graphs(paths, [5, None, 7])
    made = to_pyg(graphs)
    assert [None if data.y is None else data.y.tolist() for data in made] == [[5], None, [7]]
    assert same(as_graphs(made), graphs)
    nodes = as_graphs(paths, [5, None, None, -1, 5], task="node")
    assert same(as_graphs(to_pyg(nodes), task="node"), nodes)
    named = to_pyg(as_graphs(paths, ["good", None, "bad"]))
    assert [None if data.y is None else data.y.tolist() for data in named] == [[1], None, [0]]


def test_grakel_round_trip():
    from grakel import Graph

    labels = dict(enumerate(ELEMENTS))
    pairs = {edge: 1.0 for a, b in EDGES for edge in ((a, b), (b, a))}
    kinds = [
        [set(pairs), labels],
        (pairs, labels, {}),
        [dense(EDGES, 5), labels],
        [{0: [1, 2], 1: [2], 2: [3], 4: []}, labels],
        Graph(pairs, labels),
    ]
    expected = as_graphs([molecule()], [1], node_labels="element")
    for kind in kinds:
        assert same(as_graphs([kind], [1]), expected)
    assert same(as_graphs(kinds[0], [1]), expected)  # one graph, not two
    edges, found = to_grakel(expected)[0]
    assert found == labels
    assert edges[2] == {0: 1.0, 1: 1.0, 3: 1.0}
    assert edges[4] == {}
    assert same(as_graphs(to_grakel(expected), [1]), expected)
    numbers = as_graphs([[dense(EDGES, 5), {i: [i / 2, 1] for i in range(5)}]])
    assert numbers.attributes[3].tolist() == [1.5, 1]
    assert same(as_graphs(to_grakel(numbers)), numbers)
    with pytest.raises(DataError, match="has 1 labels a node and attributes: GraKeL can hold one"):
        to_grakel(as_graphs([molecule()]))


def test_graphs_of_grakel_are_left_alone():
    from grakel import Graph

    graph = Graph(dense(EDGES, 5))
    before = graph._format
    assert same(as_graphs([graph]), as_graphs([dense(EDGES, 5)]))  # it has no labels
    assert graph._format == before == "adjacency"
    one_way = as_graphs([[{"b": ["a"], "c": ["b"]}, {"c": 3, "b": 2, "a": 1}]])
    assert one_way.labels.flatten().tolist() == [0, 1, 2]
    assert one_way.simple_edges.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]


def test_entries_that_are_there_twice_are_summed():
    rows, columns = [0, 0, 1, 1], [1, 1, 0, 0]
    for kind in (sp.coo_array, sp.csr_array):
        matrix = kind((np.ones(4), (rows, columns)), shape=(2, 2))
        with pytest.raises(DataError, match=r"graphs\[0\]\[0, 1\] is 2.0: an adjacency matrix"):
            as_graphs([matrix])
    halves = sp.coo_array((np.full(4, 0.5), (rows, columns)), shape=(2, 2))
    assert as_graphs([halves]).edge_index.tolist() == [[0], [1]]
    assert halves.nnz == 4


def test_attributes_of_edges_are_kept_with_a_warning():
    weighted = nx.Graph()
    weighted.add_edge(0, 1, weight=0.5, bond="double")
    edge_index = torch.tensor([[0], [1]])
    for graphs, names in (
        ([nx.path_graph(2), weighted, weighted], r"graphs have attributes of edges \('bond', 'wei"),
        ([Data(edge_index=edge_index, edge_attr=torch.ones(1, 3), num_nodes=2)] * 2, "'edge_attr'"),
        ([[{(0, 1): 1}, {0: "a", 1: "b"}, {(0, 1): "double"}]] * 2, "'edge_label'"),
    ):
        with pytest.warns(UserWarning, match=names) as found:
            assert as_graphs(graphs).edge_index.tolist()[0][-1] == len(graphs) * 2 - 2
        assert len(found) == 1


@pytest.fixture(autouse=True)
def _warn_again():
    """The warning comes once a process; every test is its own."""
    _warn_once.cache_clear()


def bonds():
    """Two graphs whose edges have a label, a number, a list and something only one edge has."""
    first, second = nx.Graph(), nx.path_graph(2)
    first.add_edge(1, 0, bond="double", length=1.5, direction=[0.0, 1.0])
    first.add_edge(1, 2, bond="single", length=2, direction=[1.0, 0.5], note=("any", {"thing": 1}))
    first.add_edge(3, 3, bond="loop", length=0.5, direction=[0.0, 0.0])
    nx.set_edge_attributes(second, {(0, 1): {"bond": "single", "length": 0.25}})
    return [nx.convert_node_labels_to_integers(first), nx.empty_graph(2), second]


def edge_table(graph):
    return {frozenset((a, b)): values for a, b, values in graph.edges(data=True)}


KEPT = "ignore:graphs have attributes of edges:UserWarning"


@pytest.mark.filterwarnings(KEPT)
def test_edges_of_networkx_keep_their_attributes():
    graphs = as_graphs(bonds())
    for before, after in zip(bonds(), to_networkx(graphs), strict=True):
        assert edge_table(before) == edge_table(after)
    assert edge_table(to_networkx(graphs.select(torch.tensor([1, 2])))[1]) == edge_table(bonds()[2])
    assert edge_table(to_networkx(as_graphs([graphs[2], graphs]))[1]) == edge_table(bonds()[0])
    bare = bonds()
    for graph in bare:
        for values in edge_table(graph).values():
            values.clear()
    assert as_graphs(bare).edge_values == {}
    assert as_graphs(bare).fingerprint == graphs.fingerprint


@pytest.mark.filterwarnings(KEPT)
def test_edges_of_pyg_keep_their_attributes():
    edge_index = torch.tensor([[1, 0, 2, 2], [0, 1, 1, 2]])
    both = torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]])
    given = Data(edge_index=edge_index, num_nodes=3)
    given.edge_attr = torch.tensor([[10.0, 1], [1.5, 10], [21, 12], [22, 22]])
    given.edge_weight = torch.tensor([10, 1, 21, 22], dtype=torch.float64)
    given.edge_type = ["b", "a", "c", "loop"]
    back = to_pyg(as_graphs([given]))[0]
    assert torch.equal(back.edge_index, both)
    # A direction of its own keeps its value; the one that was not given has that of the other.
    assert back.edge_attr.tolist() == [[1.5, 10], [10, 1], [21, 12], [21, 12], [22, 22]]
    assert (back.edge_attr.dtype, back.edge_weight.dtype) == (torch.float32, torch.float64)
    assert back.edge_weight.tolist() == [1, 10, 21, 21, 22]
    assert back.edge_type == ["a", "b", "c", "c", "loop"]
    again = to_pyg(as_graphs([back]))[0]
    assert torch.equal(again.edge_attr, back.edge_attr)
    assert again.edge_type == back.edge_type

    # By way of PyG, and back: a tensor where all are numbers, else a list.
    other = to_pyg(as_graphs(bonds()))
    assert other[0].edge_length.tolist() == [1.5, 2, 1.5, 2, 0.5]
    assert other[0].edge_direction.shape == (5, 2)
    assert other[2].edge_bond == ["single", "single"]
    for before, after in zip(bonds(), to_networkx(as_graphs(other)), strict=True):
        assert edge_table(before) == edge_table(after)


@pytest.mark.filterwarnings(KEPT)
def test_names_of_nodes_and_edges_do_not_meet_in_pyg():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: "A", 1: "B", 2: "C"}, "label")
    for name in ("label", "index", "values", "y", "x", "edge_attr"):
        nx.set_edge_attributes(graph, {(0, 1): f"{name}0", (1, 2): f"{name}1"}, name)
    nx.set_node_attributes(graph, {0: 0.5, 1: 1.5, 2: 2.5}, "charge")
    nx.set_node_attributes(graph, {n: [n / 2, 1.0] for n in range(3)}, "place")
    nx.set_node_attributes(graph, {n: n + 0.25 for n in range(3)}, "x")
    nx.set_node_attributes(graph, {n: n + 0.75 for n in range(3)}, "y")
    graph.graph |= {"y": "good", "id": "first"}
    data = to_pyg(as_graphs([graph]))
    (back,) = to_networkx(as_graphs(data))
    assert edge_table(back) == edge_table(graph)
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    assert back.graph["y"] == "good"
    assert to_networkx(as_graphs([graph]))[0].graph == graph.graph
    some = as_graphs(data, node_labels=[], node_attributes="place")
    assert (some.attribute_columns, some.attributes[2].tolist()) == (("place",) * 2, [1, 1])
    wide = Data(x=torch.ones(3, 4), edge_index=data[0].edge_index, node_attributes=["a", "b"])
    with pytest.raises(
        DataError, match=r"graphs\[0\].x must have 2 columns, as node_attributes has"
    ):
        as_graphs([wide])
    for name in ("y", "edge_kind", "x", "size", "num_features"):
        nx.set_node_attributes(graph, "strange", name)
        with pytest.raises(DataError, match=f"graphs has '{name}', which means something else"):
            to_pyg(as_graphs([graph], node_labels=[name], node_attributes="charge"))
    both = nx.Graph([(0, 1, {"attr": 1, "edge_attr": 2})])
    with pytest.raises(DataError, match="graphs has 'attr', which means something else in PyG"):
        to_pyg(as_graphs([both]))


@pytest.mark.filterwarnings(KEPT)
def test_of_parallel_edges_the_first_counts():
    graphs = as_graphs([nx.MultiGraph([(0, 1, {"w": 1}), (1, 0, {"w": 2}), (0, 1, {"w": 3})])])
    assert to_networkx(graphs)[0].edges[0, 1] == {"w": 1}
    assert to_pyg(graphs)[0].edge_w.tolist()[0] == 1
    mixed = Data(edge_index=torch.tensor([[0, 1, 0], [1, 0, 1]]), edge_attr=torch.tensor([1, 2, 3]))
    mixed.num_nodes = 2
    assert to_networkx(as_graphs([mixed]))[0].edges[0, 1] == {"edge_attr": 1}
    assert to_grakel(graphs)[0][2][0, 1] == 1


@pytest.mark.filterwarnings(KEPT)
def test_rows_of_edges_are_counted():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    data.edge_label_index = torch.zeros(2, 5)  # not of edges, though it begins so
    data.edge_attr = torch.ones(2, dtype=torch.bfloat16)
    assert as_graphs([data]).edge_values["edge_attr"].tolist() == [1, 1]
    data.edge_values, data.node_labels = torch.ones(2), torch.zeros(3)  # the user's own
    assert sorted(as_graphs([data]).edge_values) == ["edge_attr", "edge_values"]
    data.edge_attr = torch.ones(3)
    with pytest.raises(DataError, match=r"graphs\[0\].edge_attr is .* 2 rows, one an edge"):
        as_graphs([data])


def test_what_is_no_set_is_named():
    for write in (to_networkx, to_pyg, to_grakel, to_adjacency, to_smiles):
        with pytest.raises(DataError, match="graphs is a list: as_graphs makes a GraphSet of it"):
            write([nx.path_graph(2)])
    one = as_graphs([nx.path_graph(2)], [1.0])
    assert one.class_names == ("1",)
    for write in (to_networkx, to_pyg, to_grakel, to_adjacency):
        assert write(one.select(torch.tensor([], dtype=torch.long))) == []


@pytest.mark.filterwarnings(KEPT)
def test_edges_of_grakel_keep_their_labels():
    from grakel import Graph

    labels = {0: "a", 1: "b", 2: "a"}
    edges = {(0, 1): 1.0, (1, 0): 1.0, (1, 2): 1.0, (2, 1): 1.0}
    kinds = {(0, 1): "double", (1, 0): "reverse", (1, 2): 3, (2, 1): 3}
    for graph in ([edges, labels, kinds], Graph(edges, labels, kinds)):
        assert to_grakel(as_graphs([graph]))[0][2] == kinds
    matrix = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    half = to_grakel(as_graphs([[matrix, None, {(1, 0): "double"}]]))[0]
    assert half[1:] == [None, {(0, 1): "double", (1, 0): "double"}]
    assert to_grakel(as_graphs([half]))[0] == half
    with pytest.raises(
        DataError, match=r"graphs\[0\]: there is a label for \(0, 2\), which is not"
    ):
        as_graphs([[edges, labels, {(0, 2): "none"}]])
    with pytest.raises(
        DataError, match="graphs has 'bond', 'length', 'direction', 'note' of edges"
    ):
        to_grakel(as_graphs(bonds()))


SMILES = [
    "CCO",
    "c1ccccc1[N+](=O)[O-]",
    "c1cc[nH]c1",
    "C#N",
    "[Na+].[Cl-]",
    "CC(=O)Oc1ccccc1C(=O)O",
]


@pytest.mark.filterwarnings(KEPT)
def test_smiles_round_trip():
    pytest.importorskip("rdkit", reason="SMILES need RDKit, the extra chem")
    from rdkit import Chem

    graphs = as_graphs(SMILES, node_labels=["element", "charge", "hydrogens"])
    assert to_smiles(graphs) == [Chem.CanonSmiles(smiles) for smiles in SMILES]
    assert list(graphs.ids) == SMILES
    for there in (to_networkx, to_pyg):
        assert to_smiles(as_graphs(there(graphs))) == to_smiles(graphs)
    with pytest.raises(DataError, match="graphs has no 'charge': SMILES are written of the labels"):
        to_smiles(as_graphs(["CC"]))
    for wrong, message in (
        ({"element": "Xx"}, "has the element 'Xx', which does not exist"),
        ({"charge": "x"}, "has the charge 'x': it must be an integer"),
        ({"hydrogens": 9}, r"is no molecule: Explicit valence"),
        ({"bond": "single"}, "has the bond 'single': it must be as 'SINGLE'"),
    ):
        values = {"element": "C", "charge": 0, "hydrogens": 3, "bond": "SINGLE"} | wrong
        graph = nx.Graph([(0, 1, {"bond": values.pop("bond")})])
        graph.add_nodes_from([(0, values), (1, values)])
        with pytest.raises(DataError, match=rf"graphs\[0\] {message}"):
            to_smiles(as_graphs([graph]))


def test_edge_lists():
    graphs = as_graphs([[("b", "a"), ("b", "c")], {("x", "y")}])
    assert graphs.size.tolist() == [3, 2]
    assert graphs.simple_edges.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [3, 4], [4, 3]]


def test_a_list_of_dictionaries_is_a_list_of_graphs():
    a, b = {0: {1: 1.0}, 1: {0: 1.0}}, {0: [1], 1: [0]}
    assert as_graphs([a, {}]).size.tolist() == [2, 0]
    assert as_graphs([a, {}, {}]).size.tolist() == [2, 0, 0]
    assert as_graphs([b, b]).size.tolist() == [2, 2]
    assert as_graphs([[b, {0: "C", 1: "O"}]]).label_names == (("C", "O"),)
    for labels in ({0: "C", 1: "O"}, {0: 1, 1: 2}):
        with pytest.raises(
            DataError, match=r"graphs\[1\]: the neighbours of 0 are .*\[\[edges, lab"
        ):
            as_graphs([b, labels])


def test_molecules():
    pytest.importorskip("rdkit", reason="SMILES need RDKit, the extra chem")
    from rdkit import Chem

    graphs = as_graphs(["CCO", "c1ccccc1[N+](=O)[O-]", ""], ["a", "b", "a"])
    assert graphs.size.tolist() == [3, 9, 0]
    assert graphs.label_names == (("C", "N", "O"),)
    assert graphs.labels[:3].flatten().tolist() == [0, 0, 2]
    assert graphs.edge_index[:, :2].T.tolist() == [[0, 1], [1, 2]]
    assert same(as_graphs([Chem.MolFromSmiles("CCO")]), as_graphs("CCO"))
    more = as_graphs(["C[NH3+]"], node_labels=["element", "charge", "hydrogens", "aromatic"])
    assert more.label_columns == ("element", "charge", "hydrogens", "aromatic")
    assert more.label_names == (("C", "N"), ("0", "1"), ("3",), ("0",))
    with pytest.raises(DataError, match=r"graphs\[1\] is 'C1CC': RDKit cannot read it as SMILES"):
        as_graphs(["CC", "C1CC"])
    with pytest.raises(ValueError, match="node_labels of molecules is 'mass'"):
        as_graphs(["CC"], node_labels="mass")


def test_molecules_without_rdkit(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(ImportError, match=r"need RDKit: pip install rdkit"):
        as_graphs(["CCO"])


@pytest.mark.filterwarnings("ignore:graphs have attributes of edges")
def test_mutag_survives_every_round_trip():
    mutag = load_graphs("MUTAG").select(torch.arange(40))
    for there in (to_networkx, to_grakel):
        assert same(as_graphs(there(mutag), mutag.y.tolist()), as_graphs(mutag, mutag.y.tolist()))
    assert same(as_graphs(to_networkx(mutag)), as_graphs(mutag))
    assert same(as_graphs(to_pyg(mutag)), as_graphs(mutag))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_any_networkx_graphs_survive(data):
    made = []
    for _ in range(data.draw(st.integers(1, 3))):
        graph = nx.gnp_random_graph(
            data.draw(st.integers(0, 6)), 0.5, seed=data.draw(st.integers(0))
        )
        for node in graph:
            graph.nodes[node]["kind"] = data.draw(st.integers(-3, 3))
            graph.nodes[node]["size"] = data.draw(st.floats(-1e9, 1e9))
        graph.graph["y"] = data.draw(st.sampled_from(["yes", "no"]))
        made.append(graph)
    for before, after in zip(made, to_networkx(as_graphs(made)), strict=True):
        assert nx.utils.graphs_equal(before, after)


def with_values(**values):
    graph = nx.path_graph(2)
    graph.nodes[0]["size"], graph.nodes[1]["size"] = 1.0, 2.0
    graph.nodes[1].update(values)
    return graph


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (None, "graphs is None: expected are networkx graphs, PyG Data"),
        (3, "graphs is 3: expected"),
        ([], "graphs is empty"),
        ([None], r"graphs\[0\] is None: expected"),
        ([nx.path_graph(2), None], r"graphs\[1\] is None"),
        (
            [nx.path_graph(2), dense(EDGES, 5)],
            r"graphs\[1\] is an adjacency matrix, but graphs\[0\]",
        ),
        (np.zeros((150, 4)), r"a table of shape \(150, 4\): rows of features are not graphs"),
        ([[5.1, 3.5, 1.4], [4.9, 3.0, 1.4]], r"a table of shape \(2, 3\)"),
        (np.arange(4.0), r"graphs\[0\] is"),
        ([np.zeros((2, 3))], r"graphs\[0\] is an array of shape \(2, 3\): an adjacency .* square"),
        (np.full((2, 2), 0.5), r"graphs\[0\]\[0, 0\] is 0.5: an adjacency matrix holds zeros"),
        ([np.full((2, 2), np.nan)], r"graphs\[0\]\[0, 0\] is nan"),
        (np.triu(np.ones((3, 3))), r"\[0, 1\] is 1, but \[1, 0\] is 0: an adjacency .* symmetric"),
        ([np.array([["a", "b"], ["c", "d"]])], "holds zeros and ones"),
        (nx.DiGraph([(0, 1)]), r"graphs\[0\] is directed: .* graph.to_undirected\(\) drops it"),
        (
            with_values(size=float("nan")),
            r"graphs\[0\], node 1: 'size' is nan: it must be a number",
        ),
        (with_values(size=1e31), "'size' is 1e\\+31"),
        (with_values(size=[1.0, 2.0]), "'size' has 2 numbers where the nodes before have 1"),
        (with_values(size={"a": 1}), "'size' is {'a': 1}: it must be a number within 1e"),
        (with_values(colour="red"), r"graphs\[0\], node 0 has no 'colour': every node needs one"),
        (with_values(size=None), "node 1 has no 'size'"),
        ([[{0: {1: 2.0}, 1: {0: 2.0}}]], r"graphs\[0\]: edge 0, 1 has weight 2.0"),
        ([[{(0, 1): 1}, {0: "a"}]], "node 1 has no 'label'"),
        ([[np.zeros((1, 1)), {0: "a", 5: "b"}]], "a label for 5, which is not a node"),
        (Data(x=torch.ones(2, 1)), r"graphs\[0\] has no edge_index"),
        (
            Data(x=torch.tensor([[1.0], [torch.inf]]), edge_index=torch.tensor([[0], [1]])),
            r"graphs\[0\].x\[1, 0\] is inf",
        ),
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [2]])), "edge_index contains 2"),
        (HeteroData(), "expected are"),
    ],
)
def test_errors_say_what_could_not_be_read(graphs, message):
    with pytest.raises(DataError, match=message):
        as_graphs(graphs)


def test_errors_about_names_and_classes(tmp_path):
    graph = molecule()
    for arguments, message in (
        ({"node_labels": "colour"}, r"graphs\[0\], node 'a0' has no 'colour'"),
        ({"node_labels": "charge"}, "'charge' is 0.0: it must be an integer or a printable string"),
        ({"node_attributes": "element"}, "'element' is 'C': it must be a number within 1e"),
        ({"node_labels": "element", "node_attributes": ["element"]}, "'element' is in node_labels"),
        ({"node_labels": 3}, "node_labels is 3: it must be a name, or a list"),
        ({"y": [1, 2]}, "y has 2 classes, but there are 1 graphs"),
        ({"y": [0.5]}, r"y\[0\] is 0.5: it must be an integer or a printable string"),
        ({"y": "bad"}, "y is 'bad': it must be a list of classes"),
    ):
        with pytest.raises(DataError, match=message):
            as_graphs([graph], **arguments)
    with pytest.raises(
        DataError, match="node_labels is 'a': an adjacency matrix has no attributes"
    ):
        as_graphs([np.eye(2)], node_labels="a")
    with pytest.raises(DataError, match="load_graphs reads files"):
        as_graphs(tmp_path)
    wide = [Data(x=torch.ones(2, w), edge_index=torch.tensor([[0], [1]])) for w in (1, 2)]
    with pytest.raises(
        DataError, match=r"graphs\[1\] has attribute 'x' \(2 numbers\); graphs\[0\]"
    ):
        as_graphs(wide)
