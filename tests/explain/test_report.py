"""The report: what it says is what the run and the model say; it needs nothing but itself."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import networkx as nx
import pytest
import torch

from kergnn.config import ConfigError, RunConfig
from kergnn.explain import explain, filter_graphs, filter_importance
from kergnn.explain.report import make_report, write_report
from kergnn.explain.subject import open_run
from kergnn.runs import start_run


class Page(HTMLParser):
    """Collects elements and text, and checks that tags are closed in order."""

    VOID = ("meta", "link", "br", "input", "img")

    def __init__(self, html):
        super().__init__()
        self.elements, self.open, self.text, self.ids = [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def with_class(self, name):
        return [a for _, a in self.elements if name in (a.get("class") or "").split()]


@pytest.fixture(scope="module")
def report(mutag_subject):
    return make_report(mutag_subject)


@pytest.fixture(scope="module")
def page(report):
    return Page(report.html)


def links_of(html):
    text = re.search(r'<script type="application/json" id="links">(.*?)</script>', html)[1]
    return json.loads(text)


def test_the_page_is_whole_and_needs_no_other_file(report, page):
    assert len(page.ids) == len(set(page.ids))
    for _, attributes in page.elements:
        for name in ("src", "href"):
            value = attributes.get(name)
            if value is not None:
                assert value == "data:," or value.removeprefix("#") in page.ids, value
    assert "http" not in re.sub(r"http://www\.w3\.org/2000/svg", "", report.html)
    assert len(report.html) < 2e6


def test_every_filter_and_every_node_is_there_and_can_be_reached(report, page, mutag_subject):
    filters = page.with_class("filter")
    assert len(filters) == 12
    assert all(card["tabindex"] == "0" for card in filters)
    assert len(report.graphs) == 4
    panels = 4  # input, two layers, explanation
    nodes = sum(card.drawn.number_of_nodes() for card in report.graphs)
    assert len(page.with_class("node")) == panels * nodes
    sizes = [int(mutag_subject.graphs.size[int(c.title.split()[1])]) for c in report.graphs]
    assert nodes == sum(sizes)


def test_the_numbers_are_those_of_the_run(report, page, mutag_run, mutag_subject):
    text = " ".join(page.text)
    results = json.loads((mutag_run / "results.json").read_text())
    assert f"{100 * results['test']['accuracy']:.1f} %" in text
    assert "188" in text
    found = filter_importance(
        mutag_subject.model, mutag_subject.batches, mutag_subject.split.validation
    )
    for layer, shown in zip(found, report.layers, strict=True):
        assert sorted((c.importance.index, c.importance.drop) for c in shown.cards) == sorted(
            (one.index, one.drop) for one in layer
        )
        drops = [c.importance.drop for c in shown.cards]
        assert drops == sorted(drops, reverse=True)


def test_the_columns_of_the_features_are_named(page, mutag_subject):
    names = mutag_subject.run.features.names
    assert f"A node has 7 features: {', '.join(names)}." in "".join(page.text)


def test_the_shown_graphs_are_typical(report, mutag_subject):
    graphs = mutag_subject.graphs
    shown = [int(card.title.split()[1]) for card in report.graphs]
    assert set(shown) <= set(mutag_subject.split.test.tolist())
    assert [card.truth for card in report.graphs] == ["-1", "-1", "1", "1"]
    for g, card in zip(shown, report.graphs, strict=True):
        assert graphs.class_names[graphs.y[g]] == card.truth


def test_graphs_without_nodes_are_not_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("KERGNN_CACHE", str(tmp_path / "cache"))
    made = [
        {"nodes": n, "edges": [[i, (i + 1) % n] for i in range(n)], "label": str(n % 2)}
        for n in [*range(3, 13)] * 3
    ]
    made += [{"nodes": 0, "edges": [], "label": str(i % 2)} for i in range(30)]
    path = tmp_path / "rings.jsonl"
    path.write_text("\n".join(map(json.dumps, made)))
    start_run(RunConfig(dataset=str(path), epochs=2, hidden_channels=4), tmp_path / "run")
    subject = open_run(tmp_path / "run")
    empty = subject.graphs.size == 0
    for test in (torch.arange(20, 60), torch.arange(30, 60)):  # most of them empty; all of them
        seen = replace(subject, split=replace(subject.split, test=test))
        shown = seen.typical(2)
        assert shown
        assert not empty[shown].any()
        assert len(make_report(seen).graphs) == len(shown)
    with pytest.raises(ConfigError, match="graphs has 30: it must be a graph that has nodes"):
        make_report(subject, which=[30])


def test_links_are_the_models_own_responses(report, mutag_subject):
    """Responses are kernel values between the lowest and the highest in the graphs shown."""
    links = links_of(report.html)
    assert links["layers"][1][4] == "2.5"
    shown = [int(card.title.split()[1]) for card in report.graphs]
    batch = mutag_subject.batches(torch.tensor(shown))
    model = mutag_subject.model.eval()
    features = model.node_features(batch.x, batch.ego)
    values = model.convs[1].kernel_values(features[1], batch.ego)[:, 4].detach()
    relative = (values - values.min()) / (values.max() - values.min())
    found = [row[4] for g in ("g0", "g1", "g2", "g3") for row in links["graphs"][g]["response"][1]]
    assert found == pytest.approx((100 * relative).round().tolist(), abs=1)
    edges = nx.Graph(mutag_subject.data(shown[0]).edge_index.T.tolist())
    for node, members in enumerate(links["graphs"]["g0"]["ego"]):
        assert set(members) == {node, *edges[node]}


def test_contributions_are_those_of_the_explanation(report, mutag_subject):
    card = report.graphs[2]
    data = mutag_subject.data(int(card.title.split()[1]))
    found = explain(mutag_subject.model, data)
    assert card.links["contribution"] == pytest.approx(found.node_contribution.tolist(), abs=1e-4)
    layers = found.layer_contribution / found.layer_contribution.abs().max()
    for k in range(3):
        assert card.panels[k].contributions == pytest.approx(layers[k].tolist(), abs=0.006)
    assert card.logit == pytest.approx(float(found.prediction[0, found.target]), rel=1e-4)


def test_chosen_graphs_class_and_threshold(mutag_subject):
    made = make_report(mutag_subject, threshold=0.9, which=[3, 17, 3], target="-1")
    assert [card.title for card in made.graphs] == ["Graph 3", "Graph 17"]
    assert {card.target for card in made.graphs} == {"-1"}
    drawn = filter_graphs(mutag_subject.model, 0.9)
    for layer, shown in zip(drawn, made.layers, strict=True):
        for card in shown.cards:
            assert len(card.picture.lines) == layer[card.importance.index].number_of_edges()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"which": [188]}, "graphs has 188: it must be from 0 to 187"),
        ({"which": [-1]}, "graphs has -1"),
        ({"target": "mutagen"}, "class is 'mutagen': it must be one of -1, 1"),
        ({"threshold": 2.0}, "threshold is 2.0"),
    ],
)
def test_what_is_not_there_cannot_be_shown(mutag_subject, options, message):
    with pytest.raises(ValueError, match=message):
        make_report(mutag_subject, **options)


def test_files_are_written_beside_the_run(mutag_subject, tmp_path):
    path = write_report(mutag_subject, tmp_path / "out", which=[5])
    assert path == tmp_path / "out" / "report.html"
    figures = sorted(p.name for p in (tmp_path / "out" / "figures").iterdir())
    assert figures == ["filters.svg", "graph-5.svg"]


def test_names_from_a_file_cannot_break_the_page(tmp_path):
    """Labels, classes and ids are text, whatever they hold."""
    bad = "</script><b>&\"'"
    with (tmp_path / "bad.jsonl").open("w") as file:
        for i in range(24):
            edges = [[j, (j + 1) % 5] for j in range(5 - i % 2)]
            record = {"nodes": [bad, "x", "x", "x", "x"], "edges": edges, "id": f"<{i}>"}
            file.write(json.dumps({**record, "label": ["</title>", "<i>b"][i % 2]}) + "\n")
    config = RunConfig(dataset=str(tmp_path / "bad.jsonl"), epochs=1, hidden_channels=3)
    start_run(config, tmp_path / "run")
    page = Page(make_report(open_run(tmp_path / "run")).html)
    assert bad in "".join(page.text)
    assert not any(tag == "b" and attributes is None for tag, attributes in page.elements)


def start_node_run(folder, edges, **settings):
    count = 300
    record = {
        "nodes": count,
        "edges": edges,
        "features": [[float(i % 2), 1.0] for i in range(count)],
        "targets": ["even" if i % 2 == 0 else "odd" for i in range(count)],
    }
    (folder / "net.jsonl").write_text(json.dumps(record))
    dataset = str(folder / "net.jsonl")
    config = RunConfig(dataset=dataset, epochs=2, hidden_channels=4, **settings)
    start_run(config, folder / "run")


def test_smoothed_nodes_are_shown_with_all_that_counts(tmp_path):
    start_node_run(tmp_path, [[i, (i + 1) % 300] for i in range(300)], num_layers=1, restart=0.1)
    (card,) = make_report(open_run(tmp_path / "run"), which=[150]).graphs
    assert card.links["nodes"] == list(range(139, 162))
    assert card.note == "its neighbourhood: 23 of 300 nodes drawn"
    assert all(card.links["contribution"][2:-2])  # those farther away are rounded to 0
    chords = [[0, i] for i in range(2, 300, 2)]
    (tmp_path / "hub").mkdir()
    start_node_run(tmp_path / "hub", chords, num_layers=1, restart=0.1, max_nodes=None)
    made = make_report(open_run(tmp_path / "hub" / "run"), which=[0])
    (hub,) = made.graphs
    assert re.search(r"60 of 300 nodes drawn, with \d\d % of all contributions", hub.note)
    assert "what smoothing carries" in made.html


def test_nodes_are_shown_with_their_neighbourhood(tmp_path):
    count = 300
    edges = [[i, (i + 1) % count] for i in range(count)] + [[0, i] for i in range(2, count, 2)]
    start_node_run(tmp_path, edges)
    subject = open_run(tmp_path / "run")
    made = make_report(subject, which=[7, 0])
    assert [card.title for card in made.graphs] == ["Node 7", "Node 0"]
    near, hub = made.graphs
    assert hub.drawn.number_of_nodes() == 60
    assert "60 of 300 nodes drawn" in hub.note
    assert near.links["nodes"][near.centre] == 7
    assert "60 of 300 nodes drawn" in made.html
    Page(make_report(subject).html)


def test_of_a_large_graph_a_part_is_drawn_and_said_so(tmp_path):
    with (tmp_path / "large.jsonl").open("w") as file:
        for i in range(20):
            n = 400 if i == 7 else 6
            edges = [[j, j + 1] for j in range(n - 1)] + ([[0, n - 1]] if i % 2 else [])
            record = {"nodes": n, "edges": edges, "label": i % 2}
            file.write(json.dumps(record) + "\n")
    config = RunConfig(dataset=str(tmp_path / "large.jsonl"), epochs=1, hidden_channels=3)
    start_run(config, tmp_path / "run")
    (card,) = make_report(open_run(tmp_path / "run"), which=[7]).graphs
    assert card.drawn.number_of_nodes() == 250
    assert "250 of 400 nodes drawn" in card.note


def test_only_runs_of_a_kergnn_can_be_explained(tmp_path):
    start_run(RunConfig(model="gin", epochs=1, hidden_channels=4), tmp_path / "run")
    with pytest.raises(ConfigError, match="its model is 'gin'; only runs of 'kergnn'"):
        open_run(tmp_path / "run")


def test_a_logit_is_shown_with_what_belongs_to_no_node(page, report, mutag_subject):
    minus = "\N{MINUS SIGN}"
    number = rf"([{minus}+]?\d+\.\d+)"
    found = re.findall(rf"logit {number} = {number} {number} of the nodes", "".join(page.text))
    assert len(found) == len(report.graphs)
    for parts, card in zip(found, report.graphs, strict=True):
        logit, rest, nodes = (float(part.replace(minus, "-")) for part in parts)
        data = mutag_subject.data(int(card.title.split()[1]))
        target = mutag_subject.run.class_names.index(card.target)
        explanation = explain(mutag_subject.model, data, target=target)
        assert rest == pytest.approx(float(explanation.baseline), abs=0.006)
        assert nodes == pytest.approx(float(explanation.node_contribution.sum()), abs=0.006)
        assert logit == pytest.approx(rest + nodes, abs=0.016)


def test_measures_that_say_little_are_doubted(mutag_subject):
    scores = {"ablation_drop": 0.2, "random_drop": 0.2}
    assert "of edges say little here" in make_report(mutag_subject, scores=scores).html
    scores["ablation_drop"] = 0.5
    assert "say little" not in make_report(mutag_subject, scores=scores).html
