import json
import os
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


def told_with(**variables):
    """What another process tells that has these variables in its environment."""
    ask = "import json; from kergnn.versions import library_code; print(json.dumps(library_code()))"
    made = subprocess.run(
        [sys.executable, "-c", ask],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(made.stdout)


@pytest.mark.skipif("openblas" not in library_code(), reason="numpy does not use OpenBLAS here")
def test_code_of_libraries_is_what_they_take_not_what_the_processor_is_called():
    first, second = (told_with(OPENBLAS_CORETYPE=name) for name in ("Nehalem", "Haswell"))
    if first["openblas"] == second["openblas"]:
        pytest.skip("this OpenBLAS has one code only")
    assert first["openblas"] == "Nehalem"
    assert first["products"] != second["products"]
    assert first["torch"] == second["torch"]


def test_code_of_libraries_is_the_same_in_every_process():
    assert told_with() == told_with() == library_code()


def test_a_library_that_does_not_tell_its_code_is_left_out(monkeypatch):
    info = [{"internal_api": "blis", "architecture": None}, {"internal_api": "openmp"}]
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: info)
    assert library_code.__wrapped__().keys() == {"torch", "products"}
