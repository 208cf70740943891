import io
import re

import matplotlib
import networkx as nx
import numpy as np
import pytest
import torch
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from torch_geometric.data import Data

from kergnn import KerGNN
from kergnn.data import load_graphs
from kergnn.explain import Importance, draw_filters, draw_graph
from kergnn.explain.drawing import label_colors
from kergnn.explain.layout import are_atoms, label_names, layout

BENZENE = nx.cycle_graph(6)


def svg(figure):
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg")
    return buffer.getvalue().decode()


def lengths(graph, place):
    return [np.hypot(*np.subtract(place[a], place[b])) for a, b in graph.edges()]


@pytest.mark.parametrize("atoms", [None, ["C"] * 6])
def test_a_ring_is_drawn_as_a_regular_hexagon(atoms):
    if atoms:
        pytest.importorskip("rdkit", reason="RDKit is not installed")
    assert lengths(BENZENE, layout(BENZENE, atoms)) == pytest.approx([1] * 6, rel=0.02)


@pytest.mark.parametrize("size", [20, 120])
def test_a_layout_is_the_same_at_every_call_and_keeps_nodes_apart(size):
    graph = nx.connected_watts_strogatz_graph(size, 4, 0.1, seed=0)
    place = layout(graph)
    assert place == layout(graph)
    points = np.array(list(place.values()))
    apart = np.linalg.norm(points[:, None] - points[None], axis=2) + 9 * np.eye(size)
    assert apart.min() > 0.02
    assert np.mean(lengths(graph, place)) == pytest.approx(1)


def test_parts_do_not_overlap_and_single_nodes_are_placed():
    graph = nx.disjoint_union_all([nx.cycle_graph(5), nx.path_graph(4), nx.empty_graph(3)])
    place = layout(graph)
    assert len(place) == 12
    boxes = []
    for part in nx.connected_components(graph):
        points = np.array([place[n] for n in part])
        boxes.append((points.min(0), points.max(0)))
    for i, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:i]:
            assert ((low > other_high) | (other_low > high)).any()
    assert layout(nx.Graph()) == {}


def test_labels_of_molecules_are_atoms():
    mutag = load_graphs("MUTAG")
    assert label_names(mutag) == ["C", "N", "O", "F", "I", "Cl", "Br"]
    assert are_atoms(label_names(mutag))
    assert not are_atoms(["C", "Q"])
    assert not are_atoms([])
    colors = label_colors(["C", "N", "O"])
    assert len(set(colors.values())) == 3


def test_a_graph_is_drawn_with_its_labels_values_and_edge_widths():
    figure = draw_graph(BENZENE, labels=list("CCNCCO"), title="pyridine, nearly")
    text = svg(figure)
    assert "pyridine, nearly" in text
    assert text.count(">N</text>") == 1
    axes = figure.axes[0]
    (lines,) = [c for c in axes.collections if hasattr(c, "get_segments")]
    assert len(lines.get_segments()) == 6

    signed = draw_graph(BENZENE, values=[-2.0, 0, 1, 0, 0, 1], edge_values=range(6))
    dots = next(c for c in signed.axes[0].collections if c.get_array() is not None)
    assert dots.get_clim() == (-2, 2)
    (lines,) = [c for c in signed.axes[0].collections if hasattr(c, "get_segments")]
    widths = lines.get_linewidths()
    assert widths[5] == max(widths) > 3 * min(widths)


def test_an_explanation_draws_its_own_contributions():
    both = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = Data(
        x=torch.ones(3, 1),
        edge_index=both,
        node_contribution=torch.tensor([-1.0, 0.5, 0.0]),
        edge_mask=torch.tensor([0.2, 0.4, 1.0, 1.0]),
    )
    axes = draw_graph(data).axes[0]
    dots = next(c for c in axes.collections if c.get_array() is not None)
    assert dots.get_array().tolist() == [-1.0, 0.5, 0.0]
    (lines,) = [c for c in axes.collections if hasattr(c, "get_segments")]
    assert lines.get_linewidths() == pytest.approx([0.5 + 3 * 0.3, 3.5])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [1.0]}, "values has 1 entries"),
        ({"labels": ["C"] * 7}, "labels has 7 entries"),
        ({"edge_values": [1.0] * 5}, "edge_values has 5 entries"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        draw_graph(BENZENE, **arguments)


def test_filters_are_drawn_by_layer_and_importance():
    torch.manual_seed(0)
    model = KerGNN(3, 5, 2, filter_size=4)
    importance = [[Importance(k, i, 0.01 * i, 0.1) for i in range(5)] for k in range(2)]
    text = svg(draw_filters(model, 0.6, ["C", "N", "O"], importance))
    assert text.index("Layer 1") < text.index("1.5 ") < text.index("1.1 ") < text.index("Layer 2")
    assert "drop +4.0 pp" in text
    few = svg(draw_filters(model, most=2))
    assert "1.2 " in few
    assert "1.3 " not in few


@pytest.mark.parametrize("columns", [1, 8])
def test_letters_stand_for_names_that_are_too_long_for_a_node(columns):
    torch.manual_seed(0)
    model = KerGNN(4, 3, 2, num_layers=1, filter_size=6)
    names = ["Cl", "cliques of 4 to 5", "a^b^c $", "x^y^z $"]  # no formulas
    figure = draw_filters(model, 0.0, names, columns=columns)
    (axes,) = figure.axes
    *texts, legend = axes.texts
    told = dict(line.split(" ", 1) for line in re.split(",  |\n", legend.get_text()))
    assert sorted(told.values()) == sorted(names[1:])
    assert sorted(told) == ["a", "b", "c"]

    # The colour of a node is that of the name that its letter stands for.
    colors, checked = label_colors(names), 0
    for nodes in (c for c in axes.collections if isinstance(c, PathCollection)):
        for point, color in zip(nodes.get_offsets(), nodes.get_facecolors(), strict=True):
            (text,) = [t.get_text() for t in texts if np.allclose(t.get_position(), point)]
            text = text.removeprefix("\N{MINUS SIGN}")
            assert to_hex(color) == colors[told.get(text, text)].lower()
            checked += 1
    assert checked == 18
    assert "x^y^z $" in svg(figure)
    box = legend.get_window_extent()
    assert figure.bbox.contains(box.x0, box.y0)
    assert figure.bbox.contains(box.x1, box.y1)


def test_drawing_leaves_the_state_of_pyplot_alone():
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    draw_graph(BENZENE)
    assert plt.get_fignums() == before


def test_empty_graphs_and_single_nodes_can_be_drawn():
    for graph in (nx.Graph(), nx.empty_graph(1), nx.empty_graph(3)):
        assert svg(draw_graph(graph, values=[0.5] * len(graph))).startswith("<?xml")


@pytest.mark.parametrize("nodes", [4, 5, 6])
def test_a_ring_is_not_drawn_as_a_knot(nodes):
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(nodes).tolist()
        ring = nx.empty_graph(nodes)
        nx.add_cycle(ring, order)
        place = np.array([layout(ring)[node] for node in order])
        angles = np.unwrap(np.arctan2(*(place - place.mean(0)).T))
        assert abs(abs(angles[-1] - angles[0]) * nodes / (nodes - 1) - 2 * np.pi) < 0.1


@pytest.mark.parametrize(("values", "limits"), [((1, 2), (0, 2)), ((-1, -2), (-2, 0))])
def test_a_colour_means_the_same_whatever_the_signs_of_the_others(values, limits):
    mixed = draw_graph(nx.path_graph(3), values=[-2.0, 2.0, 1.0])
    figure = draw_graph(nx.path_graph(3), values=[*map(float, values), 0.0])
    dots, others = (
        next(c for c in f.axes[0].collections if c.get_array() is not None) for f in (figure, mixed)
    )
    strongest = values[1]
    assert dots.to_rgba(strongest) == others.to_rgba(strongest)
    assert figure.axes[1].get_ylim() == limits


def test_a_long_title_stays_within_the_picture():
    title = "BA-SHAPES AND MUTAG, GRAPH WITH NO2 GROUPS\nand what speaks for the class"
    figure = draw_graph(nx.path_graph(3), title=title)
    figure.canvas.draw()
    (text,) = figure.texts
    assert text.get_text().splitlines()[-2:] == ["and what speaks for", "the class"]
    extent = text.get_window_extent()
    assert extent.x0 >= 0
    assert extent.x1 <= figure.bbox.x1


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_not_finite_leave_the_others_their_colours(odd):
    figure = draw_graph(nx.path_graph(3), values=[odd, 1.0, 2.0])
    dots = next(c for c in figure.axes[0].collections if c.get_array() is not None)
    assert dots.get_clim() == (-2, 2)
    assert svg(figure).startswith("<?xml")
