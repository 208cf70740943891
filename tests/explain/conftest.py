import pytest

from kergnn.config import RunConfig
from kergnn.explain.subject import open_run
from kergnn.runs import start_run


@pytest.fixture(scope="session")
def mutag_run(tmp_path_factory):
    """The directory of a short run on MUTAG."""
    out = tmp_path_factory.mktemp("runs") / "short"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERGNN_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("KERGNN_DATASETS", raising=False)
        start_run(RunConfig(epochs=8, hidden_channels=6), out)
    return out


@pytest.fixture(scope="session")
def mutag_subject(mutag_run, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERGNN_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("KERGNN_DATASETS", raising=False)
        return open_run(mutag_run)
