import re
from importlib.metadata import PackageNotFoundError

from kergnn import versions
from kergnn.versions import hash_source, software_versions


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
