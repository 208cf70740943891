import json
import math

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kergnn.data import DataError, read_jsonl


def write(path, *records):
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_graphs_with_labels_and_features(tmp_path):
    graphs = read_jsonl(
        write(
            tmp_path / "mine.jsonl",
            {"nodes": ["C", "O"], "edges": [[0, 1]], "features": [[1, 2], [3, 4]], "label": "b"},
            "",
            {"nodes": [], "edges": [], "features": [], "label": "a"},
            {"nodes": ["N"], "edges": [], "features": [[5, 6.5]], "label": "b"},
        )
    )
    assert (graphs.name, graphs.task) == ("mine", "graph")
    assert graphs.size.tolist() == [2, 0, 1]
    assert graphs.edge_index.tolist() == [[0], [1]]
    assert [graphs.class_names[c] for c in graphs.y] == ["b", "a", "b"]
    assert graphs.label_names == (("C", "N", "O"),)
    assert graphs.labels.flatten().tolist() == [0, 2, 1]
    assert graphs.attributes.tolist() == [[1, 2], [3, 4], [5, 6.5]]


def test_edges_are_shifted_to_their_graph(tmp_path):
    record = {"nodes": 3, "edges": [[0, 1], [2, 0]], "label": 7}
    graphs = read_jsonl(write(tmp_path / "g.jsonl", record, record))
    assert graphs.edge_index.tolist() == [[0, 2, 3, 5], [1, 0, 4, 3]]
    assert graphs.class_names == ("7",)


def test_nodes_with_targets_and_unknown_ones(tmp_path):
    record = {"nodes": 4, "edges": [[0, 1]], "targets": ["x", None, "y", "x"]}
    graphs = read_jsonl(write(tmp_path / "g.jsonl", record))
    assert graphs.task == "node"
    assert graphs.y.tolist() == [0, -1, 1, 0]


def test_integer_classes_are_sorted_as_numbers(tmp_path):
    records = [{"nodes": 1, "edges": [], "label": c} for c in (10, 9, -1)]
    assert read_jsonl(write(tmp_path / "g.jsonl", *records)).class_names == ("-1", "9", "10")


BASE = {"nodes": 2, "edges": [[0, 1]], "label": "a"}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("{", "not JSON"),
        ("[1, 2]", r"\[1, 2\] is not an object"),
        ('{"nodes": NaN, "edges": []}', "NaN is not a number"),
        ('{"nodes": 1, "nodes": 2, "edges": []}', "key 'nodes' is there twice"),
        ("[" * 100_000, "not JSON"),
        ('{"nodes": ' + "9" * 5000 + ', "edges": []}', "not JSON|nodes is"),
        ({"edges": []}, "key 'nodes' is missing"),
        ({"nodes": 2}, "key 'edges' is missing"),
        ({**BASE, "edgs": []}, "unknown key 'edgs'; known are edges, features, id"),
        ({**BASE, "nodes": -1}, "nodes is -1"),
        ({**BASE, "nodes": True}, "nodes is true"),
        ({**BASE, "nodes": "two"}, 'nodes is "two"'),
        ({**BASE, "nodes": [1.5, 2]}, r"nodes\[0\] is 1.5: it must be a string or an integer"),
        ({**BASE, "edges": "none"}, "edges is"),
        ({**BASE, "edges": [[0, 2]]}, r"edges\[0\] is \[0, 2\]: nodes are numbered from 0 to 1"),
        ({**BASE, "edges": [[0, -1]]}, r"edges\[0\] is \[0, -1\]"),
        ({**BASE, "edges": [[0, 1], [0]]}, r"edges\[1\] is \[0\]: it must be a pair"),
        ({**BASE, "edges": [[0, 1.0]]}, r"edges\[0\] is \[0, 1.0\]"),
        ({**BASE, "features": [[1]]}, "features must be a list of 2 lists"),
        ({**BASE, "features": [[1], [1, 2]]}, r"features\[1\] is \[1, 2\]"),
        ({**BASE, "features": [[1], ["2"]]}, r'features\[1\]\[0\] is "2": it must be a number'),
        ({**BASE, "features": [[1], [1e300]]}, r"features\[1\]\[0\] is 1e\+300"),
        ({**BASE, "label": 1.5}, "label is 1.5"),
        ({**BASE, "targets": ["a", "b"]}, "label and targets exclude each other"),
        ({"nodes": 2, "edges": [], "targets": ["a"]}, "targets must be a list of 2 classes"),
    ],
)
def test_faults_are_named_with_file_and_line(tmp_path, record, message):
    path = write(tmp_path / "g.jsonl", BASE, record)
    with pytest.raises(DataError, match=rf"g\.jsonl, line 2: .*({message})"):
        read_jsonl(path)


def test_graphs_of_different_kinds_are_refused(tmp_path):
    labelled = {**BASE, "nodes": ["C", "C"]}
    for first, second, message in (
        (BASE, labelled, "has node labels, but the first graph has none"),
        (labelled, BASE, "has no node labels, but the first graph has some"),
        (BASE, {"nodes": 2, "edges": []}, "has no label, but the first graph has one"),
        ({"nodes": 2, "edges": []}, BASE, "has a label, but the first graph has none"),
    ):
        with pytest.raises(DataError, match=f"line 2: {message}$"):
            read_jsonl(write(tmp_path / "g.jsonl", first, second))
    path = write(tmp_path / "g.jsonl", *({**BASE, "features": [[1] * k, [1] * k]} for k in (2, 3)))
    with pytest.raises(DataError, match="line 2: has 3 features a node; the graphs before have 2"):
        read_jsonl(path)


def test_files_without_graphs_or_text_are_refused(tmp_path):
    path = tmp_path / "g.jsonl"
    path.write_text("\n\n")
    with pytest.raises(DataError, match="there is no graph"):
        read_jsonl(path)
    path.write_bytes(b"\x80\x04\x95pickle")
    with pytest.raises(DataError, match="not a text file"):
        read_jsonl(path)


def test_windows_line_ends_and_byte_order_mark_change_nothing(tmp_path):
    path = tmp_path / "g.jsonl"
    path.write_bytes(("\ufeff" + json.dumps(BASE) + "\r\n" + json.dumps(BASE) + "\r\n").encode())
    assert read_jsonl(path).size.tolist() == [2, 2]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
records = st.fixed_dictionaries(
    {
        "nodes": st.integers(-1, 4) | st.lists(st.sampled_from(["C", "O", 1]), max_size=3),
        "edges": st.lists(st.lists(st.integers(-1, 4), min_size=1, max_size=3), max_size=3),
    },
    optional={
        "features": st.lists(st.lists(st.floats(width=32), max_size=2), max_size=4) | json_values,
        "label": st.sampled_from(["a", "b", 3]) | json_values,
        "targets": st.lists(st.sampled_from(["a", None]), max_size=4),
    },
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(records | json_values | st.text(max_size=10), max_size=3))
def test_any_file_is_refused_or_read_as_it_says(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("set") / "g.jsonl"
    lines = [c if isinstance(c, str) else json.dumps(c) for c in content]
    path.write_text("\n".join(lines), encoding="utf-8")
    try:
        graphs = read_jsonl(path)
    except DataError as error:
        message = str(error)
    else:
        message = None
    if message is not None:
        assert "g.jsonl" in message
        return
    given = [json.loads(line) for line in "\n".join(lines).split("\n") if line.strip()]
    sizes = [g["nodes"] if isinstance(g["nodes"], int) else len(g["nodes"]) for g in given]
    assert graphs.size.tolist() == sizes
    assert graphs.edge_index.size(1) == sum(len(g["edges"]) for g in given)
    assert torch.equal(graphs.graph_of[graphs.edge_index[0]], graphs.graph_of[graphs.edge_index[1]])
    if graphs.attributes is not None:
        flat = [v for g in given for row in g["features"] for v in row]
        assert all(
            math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-30)
            for a, b in zip(graphs.attributes.flatten().tolist(), flat, strict=True)
        )
