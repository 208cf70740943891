"""The README's Python snippets run as written, one after the other."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_snippets_run_and_say_what_is_so():
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(snippets) >= 2
    names = {}
    for snippet in snippets:
        exec(compile(snippet, str(README), "exec"), names)
    assert names["adjacency"].shape == (8, 6, 6)
    assert names["attributes"].shape == (8, 6, 4)
    difference = names["conv"](names["x"], names["hexagon"]).sum(0) - names["conv"](
        names["x"], names["triangles"]
    ).sum(0)
    assert difference.abs().min() > 1e-3
    assert names["logits"].shape == (2, 2)
