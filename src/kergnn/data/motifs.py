"""Graph sets of which it is known what decides the class, node by node and edge by edge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import networkx as nx
import numpy as np
import torch
from torch import Tensor
from torch_geometric.datasets import ExplainerDataset
from torch_geometric.datasets.graph_generator import BAGraph
from torch_geometric.datasets.motif_generator import CycleMotif, HouseMotif

from kergnn._checks import check_integer
from kergnn.data.graphset import DataError, GraphSet

MOTIFS = ("ring6", "star", "clique", "house")
_TRIES = 1000


def ba_2motifs(num_graphs: int = 1000, num_nodes: int = 20, seed: int = 0) -> GraphSet:
    """Make BA-2Motifs: a Barabasi-Albert graph joined by one edge to a house or to a five-cycle.

    Made by the generators of PyG, after Luo et al., "Parameterized Explainer for Graph Neural
    Network", NeurIPS 2020. PyG's base graph grows by one edge a node; a node that draws itself
    stays alone.

    Args:
        num_graphs: number of graphs, half of them of each class.
        num_nodes: number of nodes of the base graph.
        seed: of the random numbers.
    """
    num_graphs = check_integer("num_graphs", num_graphs, minimum=2)
    num_nodes = check_integer("num_nodes", num_nodes, minimum=2)
    parts, y = [], []
    with _seeded(seed):
        for label, motif in enumerate((HouseMotif(), CycleMotif(5))):
            count = (num_graphs + 1 - label) // 2
            parts += list(ExplainerDataset(BAGraph(num_nodes, 1), motif, 1, count))
            y += [label] * count
    return _collect(
        "BA-2Motifs",
        [
            (data.num_nodes, data.edge_index, data.node_mask > 0, data.edge_mask > 0)
            for data in parts
        ],
        y,
        ("house", "cycle"),
    )


def motif_graph(motif: str) -> nx.Graph:
    """Return a motif by name.

    Args:
        motif: ``"ring"``, ``"star"`` or ``"clique"`` and the number of nodes of the ring (6 without
            a number), of leaves (5) or of nodes of the clique (5); or ``"house"``.
    """
    kind, number = motif.rstrip("0123456789"), motif[len(motif.rstrip("0123456789")) :]
    makers: dict[str, tuple[Callable[[int], nx.Graph], int, int]] = {
        "ring": (nx.cycle_graph, 6, 3),
        "star": (nx.star_graph, 5, 4),
        "clique": (nx.complete_graph, 5, 3),
    }
    if motif == "house":
        return nx.house_graph()
    if kind not in makers:
        raise ValueError(
            f"motif is {motif!r}: it must be 'house', or as 'ring6', 'star5', 'clique4'"
        )
    maker, usual, least = makers[kind]
    size = int(number or usual)
    if not least <= size <= 12:
        raise ValueError(f"motif is {motif!r}: the number of a {kind} must be from {least} to 12")
    return maker(size)


def planted(
    motif: str,
    num_graphs: int = 400,
    num_nodes: int = 20,
    noise: float = 0.0,
    seed: int = 0,
) -> GraphSet:
    """Make graphs that differ in one motif only: one class has it, the other does not.

    A graph is a random tree, joined by an edge to the motif, which it has once. For the other class
    the edges of the motif are exchanged with edges of the tree: every node keeps its degree, the
    graph stays connected, and the motif is nowhere. A star is nothing but a degree, so the other
    class gets two smaller stars, joined at their centres, with as many nodes and edges instead.

    Args:
        motif: see :func:`motif_graph`.
        num_graphs: number of graphs, half of them of each class.
        num_nodes: number of nodes of the tree.
        noise: number of random edges that are added to the tree, a node.
        seed: of the random numbers.
    """
    pattern = motif_graph(motif)
    num_graphs = check_integer("num_graphs", num_graphs, minimum=2)
    num_nodes = check_integer("num_nodes", num_nodes, minimum=6)
    if not 0 <= noise <= 1:
        raise ValueError(f"noise is {noise!r}: it must be from 0 to 1")
    random = np.random.default_rng(seed)
    parts, y = [], []
    for g in range(num_graphs):
        label = g % 2
        graph = _planted_graph(pattern, num_nodes, noise, bool(label), random)
        inside = torch.zeros(len(graph), dtype=torch.bool)
        inside[num_nodes:] = bool(label)
        edges = torch.tensor(sorted(graph.edges), dtype=torch.long).T
        edges = torch.cat([edges, edges.flip(0)], dim=1)
        parts.append((len(graph), edges, inside, inside[edges[0]] & inside[edges[1]]))
        y.append(label)
    name = f"Planted-{motif}"
    return _collect(name, parts, y, ("without", "with"))


def hexagons(num_graphs: int = 200, seed: int = 0) -> GraphSet:
    """Make unions of hexagons or of pairs of triangles, beside a path; 1-WL sees no difference.

    The two classes have equal numbers of nodes and edges and equal degrees. The truth are the
    rings.

    Args:
        num_graphs: number of graphs, half of them of each class.
        seed: of the random numbers.
    """
    num_graphs = check_integer("num_graphs", num_graphs, minimum=2)
    random = np.random.default_rng(seed)
    parts, y = [], []
    for g in range(num_graphs):
        # Both graphs of a pair have the same numbers.
        if g % 2 == 0:
            copies, length = int(random.integers(1, 5)), int(random.integers(2, 12))
        ring = [nx.cycle_graph(6)] if g % 2 == 0 else [nx.cycle_graph(3)] * 2
        graph = nx.disjoint_union_all([nx.path_graph(length), *(ring * copies)])
        inside = torch.arange(len(graph)) >= length
        edges = torch.tensor(sorted(graph.edges), dtype=torch.long).T
        edges = torch.cat([edges, edges.flip(0)], dim=1)
        parts.append((len(graph), edges, inside, inside[edges[0]]))
        y.append(g % 2)
    return _collect("Hexagons", parts, y, ("hexagons", "triangles"))


def ground_truth(graphs: GraphSet) -> GraphSet | None:
    """Return the set with its truth: its own, or the one known of Mutagenicity; else ``None``.

    For Mutagenicity these are the groups NO2 and NH2 of the mutagens, after Luo et al. (2020):
    a nitrogen with two oxygens that have no other neighbour, or with two hydrogens, and the bonds
    between them.
    """
    if graphs.node_truth is not None or graphs.edge_truth is not None:
        return graphs
    if graphs.name != "Mutagenicity" or graphs.labels is None:
        return None
    # Positions of the elements in the label map of the archive, and of the class.
    try:
        oxygen, hydrogen, nitrogen = (graphs.label_names[0].index(n) for n in ("1", "3", "4"))
        mutagen = graphs.class_names.index("0")
    except (ValueError, IndexError):
        raise DataError(f"{graphs.name}: labels or classes are not those of the archive") from None
    element = graphs.labels[:, 0]
    row, col = graphs.simple_edges
    single = graphs.degree == 1
    nodes = torch.zeros(graphs.num_nodes, dtype=torch.bool)
    centres = {}
    for other in (oxygen, hydrogen):
        partner = (element == other) & single
        count = partner[col].long().new_zeros(graphs.num_nodes).index_add(0, row, partner[col] * 1)
        centres[other] = (element == nitrogen) & (count == 2)
        nodes |= centres[other]
        nodes[col[centres[other][row] & partner[col]]] = True
    row, col = graphs.edge_index
    bonds = torch.zeros(graphs.edge_index.size(1), dtype=torch.bool)
    for other, centre in centres.items():
        partner = (element == other) & single
        bonds |= (centre[row] & partner[col]) | (centre[col] & partner[row])
    known = (graphs.y == mutagen)[graphs.graph_of]
    return replace(graphs, node_truth=nodes & known, edge_truth=bonds & known[row])


def _planted_graph(
    pattern: nx.Graph, num_nodes: int, noise: float, present: bool, random: np.random.Generator
) -> nx.Graph:
    leaves = len(pattern) - 1
    star = pattern.number_of_edges() == leaves
    # A star is told from the rest by its degree: no other node, joined or not, may reach it.
    most = leaves - 2 if star else num_nodes
    for _ in range(_TRIES):
        base = _tree(most, num_nodes, noise, random)
        added = pattern if present or not star else _two_stars(leaves)
        graph = nx.disjoint_union(base, added)
        start = int(random.integers(num_nodes))
        graph.add_edge(start, num_nodes + int(random.integers(len(added))))
        largest = max(degree for _, degree in graph.degree)
        if star and (largest > leaves if present else largest >= leaves):
            continue
        if present:
            # One edge joins tree and motif: another copy can only be in the tree and its noise.
            if _contains(base, pattern):
                continue
            return graph
        other = graph if star else _rewired(graph, num_nodes, random)
        if other is not None and not _contains(other, pattern):
            return other
    raise ValueError(f"noise is {noise}: the noise makes the motif in every graph that is drawn")


def _two_stars(leaves: int) -> nx.Graph:
    """Return two stars joined at their centres, with as many nodes as one star of all leaves."""
    graph = nx.Graph([(0, 1)])
    graph.add_edges_from((node % 2, node) for node in range(2, leaves + 1))
    return graph


def _tree(most: int, num_nodes: int, noise: float, random: np.random.Generator) -> nx.Graph:
    """Return a random tree and some more edges, with degrees of at most ``most``."""
    tree = nx.empty_graph(num_nodes)
    for node in range(1, num_nodes):
        free = [v for v in range(node) if tree.degree(v) < most]
        tree.add_edge(node, free[int(random.integers(len(free)))])
    for _ in range(round(noise * num_nodes)):
        a, b = random.choice(num_nodes, 2, replace=False).tolist()
        if max(tree.degree(a), tree.degree(b)) < most:
            tree.add_edge(a, b)
    return tree


def _rewired(graph: nx.Graph, num_nodes: int, random: np.random.Generator) -> nx.Graph | None:
    """Exchange every edge of the motif with one of the rest: a-b, c-d become a-d, c-b."""
    graph = graph.copy()
    inner = [e for e in graph.edges if min(e) >= num_nodes]
    for a, b in inner:
        outer = [e for e in graph.edges if min(e) < num_nodes]
        c, d = outer[int(random.integers(len(outer)))]
        if random.integers(2):
            c, d = d, c
        if len({a, b, c, d}) == 4 and not graph.has_edge(a, d) and not graph.has_edge(c, b):
            graph.remove_edges_from([(a, b), (c, d)])
            graph.add_edges_from([(a, d), (c, b)])
    return graph if nx.is_connected(graph) else None


def _contains(graph: nx.Graph, pattern: nx.Graph) -> bool:
    matcher = nx.algorithms.isomorphism.GraphMatcher(graph, pattern)
    return bool(matcher.subgraph_is_monomorphic())


def _collect(
    name: str,
    parts: list[tuple[int, Tensor, Tensor, Tensor]],
    y: list[int],
    class_names: tuple[str, ...],
) -> GraphSet:
    """Join graphs, given as number of nodes, edges and the truth of nodes and edges."""
    size = torch.tensor([part[0] for part in parts])
    first = (size.cumsum(0) - size).tolist()
    edges = [part[1] + start for part, start in zip(parts, first, strict=True)]
    return GraphSet(
        name=name,
        task="graph",
        size=size,
        edge_index=torch.cat(edges, dim=1),
        y=torch.tensor(y),
        class_names=class_names,
        source="generated",
        node_truth=torch.cat([part[2] for part in parts]),
        edge_truth=torch.cat([part[3] for part in parts]),
    )


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global generators that PyG draws from, and put them back after."""
    state = np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        np.random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(state)
