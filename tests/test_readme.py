"""The README's Python snippets run as written, one after the other, after its first command."""

import re
from pathlib import Path

from kergnn.cli import main

README = Path(__file__).parents[1] / "README.md"


def test_the_snippets_run_and_say_what_is_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "MUTAG", "--epochs", "1", "--quiet", "--no-report"]) == 0
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(snippets) >= 2
    names = {}
    shapes = []
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
        shapes.append([tuple(names[n].shape) for n in ("adjacency", "attributes")])
    assert shapes[0] == [(8, 6, 6), (8, 6, 4)]
    assert shapes[1] == [(32, 6, 6), (32, 6, 7)]
    difference = names["conv"](names["x"], names["hexagon"]).sum(0) - names["conv"](
        names["x"], names["triangles"]
    ).sum(0)
    assert difference.abs().min() > 1e-3
    assert names["logits"].shape == (2, 2)
