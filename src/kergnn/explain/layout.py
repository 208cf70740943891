"""Where the nodes of a graph are drawn, and what their labels are called."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from kergnn.data import GraphSet

Positions: TypeAlias = dict[Hashable, tuple[float, float]]

# What the integers of the public sets stand for.
_ATOMS = {
    "MUTAG": "C N O F I Cl Br",
    "Mutagenicity": "C O Cl H N F Br S P I Na K Li Ca",
}
_ELEMENTS = (
    " H B C N O F Na Mg Al Si P S Cl K Ca Ti Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Ag Cd Sn Sb Te I "
    "Li Be Pt Au Hg Tl Pb Bi "
)
_EXACT_NODES = 70
_FEW_EDGES = 60  # among more some cross anyway, and it takes seconds to find out


def label_names(graphs: GraphSet) -> list[str] | None:
    """Return what the labels of the first column are called: atoms where they are known."""
    if not graphs.label_names:
        return None
    own = list(graphs.label_names[0])
    known = _ATOMS.get(graphs.name, "").split()
    if known and all(name.isdigit() and int(name) < len(known) for name in own):
        return [known[int(name)] for name in own]
    return own


def are_atoms(names: Sequence[str] | None) -> bool:
    """Return whether all names are chemical symbols."""
    return bool(names) and all(name.isalpha() and f" {name} " in _ELEMENTS for name in names or ())


def layout(graph: nx.Graph, atoms: Sequence[str] | None = None) -> Positions:
    """Return a place for every node, the same at every call; edges have a mean length of one.

    Molecules are laid out by RDKit where it is installed. Otherwise every connected part is laid
    out by its distances (Kamada and Kawai), or by springs if it is large, and turned so that it is
    wider than high.

    Args:
        graph: the graph.
        atoms: the chemical symbol of every node, in the order of the nodes.
    """
    if graph.number_of_nodes() == 0:
        return {}
    place = None if atoms is None else _molecule(graph, atoms)
    if place is not None:
        return dict(zip(graph, map(tuple, _turned(_scaled(graph, place)).tolist()), strict=True))
    parts = sorted(nx.connected_components(graph), key=len, reverse=True)
    order = {node: i for i, node in enumerate(graph)}
    placed = [_part(graph.subgraph(sorted(part, key=order.__getitem__))) for part in parts]
    return _packed(placed)


def _part(graph: nx.Graph) -> Positions:
    """Lay out one connected part."""
    number = {node: i for i, node in enumerate(graph)}
    edges = tuple(
        sorted((min(e), max(e)) for e in ((number[a], number[b]) for a, b in graph.edges()))
    )
    return dict(zip(graph, _places(len(number), edges), strict=True))


@lru_cache(maxsize=1000)
def _places(count: int, edges: tuple[tuple[int, int], ...]) -> list[tuple[float, float]]:
    """Lay out a connected graph of ``count`` nodes; small ones come again and again."""
    if count <= 2:
        return [(float(i), 0.0) for i in range(count)]
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    if count <= _EXACT_NODES:
        found = _by_distances(graph)
    else:
        start = _by_levels(graph)
        found = nx.spring_layout(graph, pos=start, seed=0, iterations=80, k=1.2 / count**0.5)
    place = _turned(_scaled(graph, np.array([found[node] for node in graph])))
    return [(x, y) for x, y in place.tolist()]


def _by_distances(graph: nx.Graph) -> Positions:
    """Lay out by distances, from a circle or, where that ends as a knot, from a planar drawing."""
    found: Positions = nx.kamada_kawai_layout(graph)
    if graph.number_of_edges() > _FEW_EDGES or not _crossings(graph, found):
        return found
    planar, embedding = nx.check_planarity(graph)
    if not planar:
        return found
    start = nx.combinatorial_embedding_to_pos(embedding)
    other: Positions = nx.kamada_kawai_layout(graph, pos=start)
    return min(found, other, key=lambda place: _crossings(graph, place))


def _crossings(graph: nx.Graph, place: Positions) -> int:
    """Return how many pairs of edges without a common end cross."""
    ends = np.array([[place[a], place[b]] for a, b in graph.edges()])
    names = np.array(list(graph.edges()))
    i, j = np.triu_indices(len(ends), 1)
    apart = (names[i][:, :, None] != names[j][:, None, :]).all((1, 2))
    (a, b), (c, d) = (ends[k[apart]].transpose(1, 0, 2) for k in (i, j))

    def side(p: NDArray[Any], q: NDArray[Any], r: NDArray[Any]) -> NDArray[Any]:
        turn: NDArray[Any] = (q - p)[:, 0] * (r - p)[:, 1] - (q - p)[:, 1] * (r - p)[:, 0]
        return turn > 0

    cross = (side(a, b, c) != side(a, b, d)) & (side(c, d, a) != side(c, d, b))
    return int(cross.sum())


def _by_levels(graph: nx.Graph) -> Positions:
    """Return rings around the node of largest degree, by distance: where springs start."""
    centre = max(graph, key=graph.degree)
    tree = nx.bfs_tree(graph, centre)
    weight = dict.fromkeys(tree, 1)
    for node in reversed(list(nx.topological_sort(tree))):
        for parent in tree.predecessors(node):
            weight[parent] += weight[node]
    place: Positions = {centre: (0.0, 0.0)}
    span, used, depth = {centre: 2 * math.pi}, {centre: 0.0}, {centre: 0}
    for parent, child in nx.bfs_edges(tree, centre):
        # A child has a part of its parent's angle by the number of nodes behind it.
        share = span[parent] * weight[child] / max(weight[parent] - 1, 1)
        angle, depth[child] = used[parent] + share / 2, depth[parent] + 1
        span[child], used[child] = share, used[parent]
        used[parent] += share
        radius = depth[child] / 4
        place[child] = (radius * math.cos(angle), radius * math.sin(angle))
    return place


def _molecule(graph: nx.Graph, atoms: Sequence[str]) -> NDArray[Any] | None:
    """Return RDKit's picture of a molecule with single bonds, ``None`` without RDKit."""
    try:
        from rdkit import Chem
        from rdkit.Chem import rdDepictor
    except ImportError:
        return None
    molecule = Chem.RWMol()
    try:
        for atom in atoms:
            molecule.AddAtom(Chem.Atom(atom))
        number = {node: i for i, node in enumerate(graph)}
        for a, b in graph.edges():
            molecule.AddBond(number[a], number[b], Chem.BondType.SINGLE)
        molecule.UpdatePropertyCache(strict=False)
        Chem.FastFindRings(molecule)
        rdDepictor.Compute2DCoords(molecule, canonOrient=True)
    except (RuntimeError, ValueError):
        return None  # not a molecule that RDKit knows how to draw
    return np.array(molecule.GetConformer().GetPositions())[:, :2]


def _scaled(graph: nx.Graph, place: NDArray[Any]) -> NDArray[Any]:
    """Make the mean length of the edges one and the centre the origin."""
    number = {node: i for i, node in enumerate(graph)}
    ends = np.array([(number[a], number[b]) for a, b in graph.edges()]).reshape(-1, 2).astype(int)
    lengths = np.linalg.norm(place[ends[:, 0]] - place[ends[:, 1]], axis=1)
    mean = lengths.mean() if len(lengths) else 1.0
    scaled: NDArray[Any] = (place - place.mean(0)) / (mean if mean > 1e-9 else 1.0)
    return scaled


def _turned(place: NDArray[Any]) -> NDArray[Any]:
    """Turn a picture so that its longest direction is horizontal."""
    if len(place) < 3:
        return place
    values, vectors = np.linalg.eigh(np.cov(place.T))
    if values[1] < 1.2 * values[0]:
        return place
    long = vectors[:, 1] * (1 if vectors[np.abs(vectors[:, 1]).argmax(), 1] > 0 else -1)
    turned: NDArray[Any] = place @ np.stack([long, [-long[1], long[0]]], axis=1)
    return turned


def _packed(parts: list[Positions]) -> Positions:
    """Put parts side by side, in rows that together are about as wide as high."""
    boxes = [np.array(list(part.values())) for part in parts]
    sizes = [np.ptp(box, axis=0) + 1.0 for box in boxes]
    limit = max(max(size[0] for size in sizes), 1.3 * sum(s[0] * s[1] for s in sizes) ** 0.5)
    placed: Positions = {}
    x = y = height = 0.0
    for part, box, (w, h) in zip(parts, boxes, sizes, strict=True):
        if x > 0 and x + w > limit:
            x, y, height = 0.0, y - height, 0.0
        low, high = box.min(0), box.max(0)
        for node, (a, b) in part.items():
            placed[node] = (float(a - low[0] + x), float(b - high[1] + y))
        x, height = x + w, max(height, h)
    return placed
