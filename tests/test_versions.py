import os
import platform
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from kergnn import versions
from kergnn.versions import hash_source, library_code, software_versions


def test_versions_name_the_source_by_a_short_hash():
    assert re.fullmatch("[0-9a-f]{12}", software_versions()["source"])


def test_the_hash_is_of_content_wherever_the_package_lies(tmp_path):
    def package(name, **files):
        for path, text in files.items():
            (tmp_path / name / path).mkdir(parents=True)
            (tmp_path / name / path / "code.py").write_text(text)
        return hash_source(tmp_path / name)

    first = package("first", a="x = 1\n", b="y = 2\n")
    assert package("elsewhere", b="y = 2\n", a="x = 1\n") == first
    assert package("edited", a="x = 1\n", b="y = 3\n") != first
    assert package("moved", a="x = 1\ny", b=" = 2\n") != first
    (tmp_path / "first" / "a" / "notes.txt").write_text("not code")
    assert hash_source(tmp_path / "first") == first


def test_versions_leave_out_what_is_not_installed(monkeypatch):
    def version(package):
        if package == "numba":
            raise PackageNotFoundError(package)
        return "1.0"

    before = software_versions()
    monkeypatch.setattr(versions, "version", version)
    assert before.keys() - software_versions().keys() == {"numba"}


@pytest.mark.skipif(
    "openblas" not in library_code() or platform.machine() not in ("x86_64", "AMD64"),
    reason="numpy does not use OpenBLAS here, or it has no such code",
)
def test_code_of_libraries_is_what_they_take_not_what_the_processor_is_called():
    ask = "from kergnn.versions import library_code; print(library_code()['openblas'])"

    def told(processor):
        environment = {**os.environ, "OPENBLAS_CORETYPE": processor}
        command = [sys.executable, "-c", ask]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    taken = {name: told(name).stdout.strip() for name in ("Nehalem", "Sandybridge")}
    assert taken == {"Nehalem": "Nehalem", "Sandybridge": "Sandybridge"}
