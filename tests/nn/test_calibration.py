import pytest
import torch
from torch import nn

from kergnn import calibrated_norms


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))


def test_statistics_are_those_of_the_batches_inside(model):
    batches = [torch.randn(50, 3) + i for i in range(4)]
    model(torch.randn(10, 3) * 100)  # old statistics, to be forgotten
    with calibrated_norms(model):
        for batch in batches:
            out = model(batch)
            assert not out.requires_grad
            assert (out != 0).all()  # dropout is off
    outputs = torch.stack([model[0](batch) for batch in batches])
    torch.testing.assert_close(model[1].running_mean, outputs.mean((0, 1)))
    torch.testing.assert_close(model[1].running_var, outputs.var(1).mean(0))


def test_a_norm_that_saw_nothing_keeps_its_statistics(model):
    model(torch.randn(10, 3))
    before = model[1].running_mean.clone()
    with calibrated_norms(model):
        pass
    assert torch.equal(model[1].running_mean, before)


@pytest.mark.parametrize("training", [True, False])
def test_mode_and_momentum_are_left_as_they_were(model, training):
    model.train(training)
    with pytest.raises(RuntimeError, match="stop"), calibrated_norms(model):
        raise RuntimeError("stop")
    assert [m.training for m in model.modules()] == [training] * 4
    assert model[1].momentum == 0.1
