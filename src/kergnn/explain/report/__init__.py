"""The HTML report of a run: one file that needs no network, and its pictures as SVG."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from kergnn.data.store import write_atomic
from kergnn.explain.drawing import draw_filters, draw_graph, label_colors, to_svg
from kergnn.explain.layout import label_names
from kergnn.explain.metrics import doubt
from kergnn.explain.report.filters import Layer, shown_layers
from kergnn.explain.report.graphs import GraphCard, graph_cards
from kergnn.explain.report.pictures import CHART, chart
from kergnn.explain.subject import Subject

_METRICS = {"balanced_accuracy": "balanced accuracy", "macro_f1": "macro F1", "roc_auc": "ROC-AUC"}

_MOST_LABELS = 12


@dataclass(frozen=True)
class Report:
    """What a report is made of.

    Args:
        layers: the filters, layer by layer.
        graphs: the graphs (or nodes) that are shown.
        html: the page.
        figures: pictures by file name.
    """

    layers: list[Layer]
    graphs: list[GraphCard]
    html: str
    figures: dict[str, bytes]


def write_report(
    subject: Subject,
    out: Path,
    threshold: float = 0.5,
    which: Sequence[int] = (),
    target: str | None = None,
    scores: dict[str, Any] | None = None,
) -> Path:
    """Write ``report.html`` and its figures into a directory; returns the page's path.

    Args:
        subject: the run.
        out: the directory.
        threshold: see :func:`~kergnn.explain.filter_graphs`.
        which: graphs (or nodes) to show; by default typical ones of every class.
        target: class whose logit is explained; by default the predicted one of each graph.
        scores: measures of the explanations, by name.
    """
    report = make_report(subject, threshold, which, target, scores)
    for name, content in report.figures.items():
        write_atomic(out / name, content)
    path = out / "report.html"
    write_atomic(path, report.html.encode())
    return path


def make_report(
    subject: Subject,
    threshold: float = 0.5,
    which: Sequence[int] = (),
    target: str | None = None,
    scores: dict[str, Any] | None = None,
) -> Report:
    """Return the report, see :func:`write_report`."""
    subject.check_choice(which, target)
    names = subject.run.class_names
    items = list(dict.fromkeys(which)) or subject.typical(2 if len(names) <= 3 else 1)
    layers = shown_layers(subject, threshold)
    graphs = graph_cards(subject, items, None if target is None else names.index(target))
    html = _page(subject, layers, graphs, threshold, bool(which), scores)
    return Report(layers, graphs, html, _figures(subject, layers, graphs, threshold))


def _page(
    subject: Subject,
    layers: list[Layer],
    graphs: list[GraphCard],
    threshold: float,
    chosen: bool,
    scores: dict[str, Any] | None,
) -> str:
    folder = files("kergnn.explain.report")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((folder / "template.html").read_text("utf-8"))
    config, results = subject.run.config, subject.results
    best, metric = results["best_epoch"], config.metric
    history = subject.history
    charts = [
        chart(
            "Loss",
            {
                "training": [row["train_loss"] for row in history],
                "validation": [row["validation_loss"] for row in history],
            },
            best,
            None,
        ),
        chart(
            _METRICS.get(metric, metric).capitalize(),
            {"validation": [row[f"validation_{metric}"] for row in history]},
            best,
            1.0,
        ),
    ]
    colors = label_colors(label_names(subject.graphs) or [])
    seen = {label for card in graphs for label in card.links["labels"] if label}
    legend = [(name, color) for name, color in colors.items() if name in seen]
    linked = {
        "layers": [[card.id for card in _by_number(layer)] for layer in layers],
        "graphs": {card.id: card.links for card in graphs},
    }
    return template.render(
        version=version("kergnn"),
        run=subject.name,
        config=config,
        settings={k: v for k, v in config.to_dict().items() if k not in ("dataset", "splits")},
        columns=subject.run.features.names,
        data=subject.graphs,
        split=subject.split,
        results=results,
        figures=[(_METRICS.get(k, k), v) for k, v in results["test"].items()],
        metric=_METRICS.get(metric, metric),
        validation=results["validation"][metric],
        charts=charts,
        chart_size=CHART,
        layers=layers,
        graphs=graphs,
        threshold=threshold,
        chosen=chosen,
        scores=scores,
        doubt=doubt(scores or {}),
        legend=legend if len(legend) <= _MOST_LABELS else [],
        style=Markup((folder / "style.css").read_text("utf-8")),
        script=Markup((folder / "script.js").read_text("utf-8")),
        linked=Markup(json.dumps(linked, separators=(",", ":")).replace("<", "\\u003c")),
    )


def _by_number(layer: Layer) -> list[Any]:
    return sorted(layer.cards, key=lambda card: card.importance.index)


def _figures(
    subject: Subject, layers: list[Layer], graphs: list[GraphCard], threshold: float
) -> dict[str, bytes]:
    importance = [[card.importance for card in _by_number(layer)] for layer in layers]
    made = {
        "filters": draw_filters(
            subject.model,
            threshold,
            subject.one_hot_names,
            importance,
            frequency=subject.one_hot_frequency,
        )
    }
    for card in graphs:
        made[card.title.lower().replace(" ", "-")] = draw_graph(
            card.drawn,
            values=card.links["contribution"],
            edge_values=card.edge_mask,
            labels=card.links["labels"],
            title=f"{card.title}: contribution to class {card.target}"
            + (card.note and f"; {card.note}"),
        )
    return {f"figures/{name}.svg": to_svg(figure) for name, figure in made.items()}
