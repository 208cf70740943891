import zipfile

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kergnn.data import DataError, read_tu_archive, read_tu_folder

# A triangle and an edge, of classes 5 and -1; labels C=6 and O=8 as integers, two attributes.
GOOD = {
    "A": "1, 2\n2, 1\n2, 3\n3, 1\n4, 5\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "5\n-1\n",
    "node_labels": "6\n6\n8\n8\n6\n",
    "node_attributes": "0.5, 1\n0, 2\n-1e3, 3\n4, 4\n5, 5\n",
}


def write(folder, files, name="TOY"):
    folder.mkdir(exist_ok=True)
    for suffix, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / f"{name}_{suffix}.txt").write_bytes(data)
    return folder


def assert_is_good(graphs):
    assert graphs.name == "TOY"
    assert graphs.size.tolist() == [3, 2]
    assert graphs.edge_index.tolist() == [[0, 1, 1, 2, 3], [1, 0, 2, 0, 4]]
    assert [graphs.class_names[c] for c in graphs.y] == ["5", "-1"]
    names = [graphs.label_names[0][c] for c in graphs.labels[:, 0]]
    assert names == ["6", "6", "8", "8", "6"]
    assert graphs.attributes.tolist()[:3] == [[0.5, 1], [0, 2], [-1000, 3]]


def test_a_folder_written_out_by_hand(tmp_path):
    assert_is_good(read_tu_folder(write(tmp_path / "set", GOOD)))
    assert_is_good(read_tu_folder(write(tmp_path / "more", {}) and _raw(tmp_path)))


def _raw(tmp_path):
    write(tmp_path / "more" / "raw", GOOD)
    return tmp_path / "more"


def test_an_archive(tmp_path):
    path = tmp_path / "TOY.zip"
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_LZMA) as archive:
        for suffix, content in GOOD.items():
            archive.writestr(f"TOY/TOY_{suffix}.txt", content)
    assert_is_good(read_tu_archive(path, "TOY"))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"TOY\.zip: not a complete zip archive"):
        read_tu_archive(path, "TOY")


def test_windows_line_ends_and_byte_order_mark_change_nothing(tmp_path):
    files = {k: ("\ufeff" + v.replace("\n", "\r\n")).encode() for k, v in GOOD.items()}
    assert_is_good(read_tu_folder(write(tmp_path / "set", files)))
    files = {k: v.rstrip("\n") for k, v in GOOD.items()}
    assert_is_good(read_tu_folder(write(tmp_path / "set", files)))


def test_optional_files_may_be_absent_and_graphs_may_have_no_edges(tmp_path):
    files = {k: GOOD[k] for k in ("graph_indicator", "graph_labels")}
    graphs = read_tu_folder(write(tmp_path / "set", {**files, "A": ""}))
    assert graphs.labels is None
    assert graphs.attributes is None
    assert graphs.edge_index.shape == (2, 0)


def test_labels_of_edges_are_values_of_edges(tmp_path):
    labels = {"edge_labels": "0\n0\n1\n2\n0\n"}
    graphs = read_tu_folder(write(tmp_path / "set", GOOD | labels))
    assert {name: v.tolist() for name, v in graphs.edge_values.items()} == {
        "label": [0, 0, 1, 2, 0]
    }
    labels = {"edge_labels": "0, 5\n0, 6\n1, 7\n2, 8\n0, 9\n"}
    graphs = read_tu_folder(write(tmp_path / "set", GOOD | labels))
    assert graphs.edge_values["label1"].tolist() == [5, 6, 7, 8, 9]
    with pytest.raises(DataError, match=r"TOY_edge_labels\.txt: 1 lines for 5 edges"):
        read_tu_folder(write(tmp_path / "set", GOOD | {"edge_labels": "0\n"}))


def test_several_label_columns(tmp_path):
    labels = "1, 7\n2, 7\n1, 9\n1, 9\n1, 9\n"
    graphs = read_tu_folder(write(tmp_path / "set", {**GOOD, "node_labels": labels}))
    assert graphs.label_names == (("1", "2"), ("7", "9"))
    assert graphs.labels.tolist() == [[0, 0], [1, 0], [0, 1], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("suffix", "content", "message"),
    [
        ("A", None, r"TOY_A\.txt \(TU format\), found none|expected one file NAME_A\.txt"),
        ("graph_labels", None, r"TOY_graph_labels\.txt: file is missing"),
        ("graph_indicator", None, r"TOY_graph_indicator\.txt: file is missing"),
        ("graph_labels", "", r"TOY_graph_labels\.txt: there is no graph"),
        ("graph_labels", "5\nactive\n", r"TOY_graph_labels\.txt, line 2: 'active' is not an int"),
        ("graph_labels", "5\n", r"graph_indicator\.txt, line 4: graph 2 is not among the 1 graphs"),
        ("graph_labels", "5\n1\n1\n", r"TOY_graph_indicator\.txt: graph 3 has no node"),
        ("graph_labels", "5, 1\n1, 1\n", "line 1: 2 values where one is expected"),
        ("graph_indicator", "1\n1\n2\n1\n2\n", "line 4: graph numbers must not decrease"),
        ("graph_indicator", "0\n1\n1\n2\n2\n", "line 1: graph 0 is not among"),
        ("graph_indicator", "1\n1\n1\n2\n", r"A\.txt, line 5: edge 4, 5 leaves the 4 nodes"),
        ("A", "1, 2\n0, 1\n", "line 2: edge 0, 1 leaves the 5 nodes"),
        ("A", "1, 2\n1, 9\n", "line 2: edge 1, 9 leaves the 5 nodes"),
        ("A", "1, 2\n3, 4\n", "line 2: edge 3, 4 joins two graphs"),
        ("A", "1, 2\n3\n", "line 2: 1 values where line 1 has 2"),
        ("A", "1\n2\n", "line 1: 1 values where two are expected"),
        ("A", "1, 2\n\n2, 3\n", "line 2: '' is not an integer"),
        ("A", "1, 2\n2, 99999999999999999999\n", "line 2: '99999999999999999999' is not an int"),
        ("A", "1, 2.5\n", "line 1: '2.5' is not an integer"),
        ("A", b"\xff\xfe\x00", r"A\.txt: not a text file"),
        ("node_labels", "6\n6\n8\n8\n", r"node_labels\.txt: 4 lines for 5 nodes"),
        ("node_attributes", "1\n2\n3\n4\nnan\n", "line 5: 'nan' is not a number"),
        ("node_attributes", "1\n2\n3\n4\n1e99\n", "line 5: '1e99' is not a number"),
        ("node_attributes", "1\n2\n3\n4\n5, 5\n", "line 5: 2 values where line 1 has 1"),
    ],
)
def test_faults_are_named_with_file_and_line(tmp_path, suffix, content, message):
    files = {**GOOD, suffix: content}
    folder = write(tmp_path / "set", {k: v for k, v in files.items() if v is not None})
    with pytest.raises(DataError, match=message):
        read_tu_folder(folder)


def test_two_sets_in_one_folder_are_refused(tmp_path):
    write(tmp_path / "set", GOOD)
    with pytest.raises(DataError, match=r"found ONE_A\.txt, TOY_A\.txt"):
        read_tu_folder(write(tmp_path / "set", GOOD, name="ONE"))


lines = st.lists(
    st.one_of(
        st.integers(-2, 7).map(str),
        st.tuples(st.integers(-1, 7), st.integers(-1, 7)).map(lambda t: f"{t[0]}, {t[1]}"),
        st.sampled_from(
            ["", " ", "x", "1.5", "9" * 30, "1e400", "nan", "1,,2", "#1", "0x1", "\u0661"]
        ),
    ),
    max_size=8,
)
files = st.dictionaries(
    st.sampled_from(sorted(GOOD)),
    st.one_of(
        st.none(),
        st.binary(max_size=20),
        st.tuples(lines, st.sampled_from(["\n", "\r\n"]), st.booleans()).map(
            lambda t: (("\ufeff" if t[2] else "") + t[1].join(t[0])).encode()
        ),
    ),
    max_size=3,
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(files)
def test_damaged_files_are_refused_or_read_as_they_say(tmp_path_factory, damage):
    """Whatever is in the files: a DataError, or a set that is consistent with them."""
    folder = tmp_path_factory.mktemp("set")
    kept = {k: v for k, v in {**GOOD, **damage}.items() if v is not None}
    write(folder, kept)
    try:
        graphs = read_tu_folder(folder)
    except DataError as error:
        message = str(error)
    else:
        message = None
    if message is not None:
        assert "TOY" in message or str(folder) in message
        return
    text = {k: (v if isinstance(v, str) else v.decode("utf-8-sig")) for k, v in kept.items()}
    rows = {k: v.rstrip().splitlines() for k, v in text.items()}
    assert graphs.num_graphs == len(rows["graph_labels"])
    assert graphs.num_nodes == len(rows["graph_indicator"])
    edges = [[int(v) - 1 for v in row.split(",")] for row in rows["A"]]
    assert graphs.edge_index.T.tolist() == edges
    assert torch.equal(graphs.graph_of[graphs.edge_index[0]], graphs.graph_of[graphs.edge_index[1]])
    assert [int(graphs.class_names[c]) for c in graphs.y] == [int(v) for v in rows["graph_labels"]]
    if graphs.attributes is not None:
        assert graphs.attributes.isfinite().all()
        assert len(graphs.attributes) == graphs.num_nodes
