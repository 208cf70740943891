import os

import pytest
import torch

# The tensors of the tests are small: a second thread would only wait for the first.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KERGNN_DATASETS", raising=False)
