import pytest
import torch
from torch.testing import assert_close

from kergnn.baselines import neighbors
from kergnn.baselines.neighbors import neighbor_sum

# One way only, so that a sum over targets is not one over sources; node 3 has no edge.
EDGES = torch.tensor([[0, 0, 1, 4], [1, 2, 2, 0]])


@pytest.fixture(params=["compiled", "torch"])
def _form(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(neighbors, "numba_is_missing", lambda: True)


@pytest.mark.usefixtures("_form")
def test_neighbor_sum_is_a_product_with_the_adjacency():
    torch.manual_seed(0)
    h = torch.randn(5, 3, dtype=torch.double, requires_grad=True)
    A = torch.zeros(5, 5, dtype=torch.double)
    A[EDGES[1], EDGES[0]] = 1
    assert_close(neighbor_sum(h, EDGES), A @ h)
    assert torch.autograd.gradcheck(lambda h: neighbor_sum(h, EDGES), h)
    assert torch.autograd.gradgradcheck(lambda h: neighbor_sum(h, EDGES) ** 2, h)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_neighbor_sum_of_other_numbers_and_strides(dtype):
    h = torch.arange(15, dtype=dtype).view(3, 5).T
    assert neighbor_sum(h, EDGES).tolist() == [
        [4.0, 9.0, 14.0],
        [0.0, 5.0, 10.0],
        [1.0, 11.0, 21.0],
        [0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0],
    ]


def test_neighbor_sum_without_edges_is_zero():
    assert not neighbor_sum(torch.ones(2, 3), EDGES[:, :0]).any()


@pytest.mark.parametrize("bad", [-1, 5])
@pytest.mark.parametrize("end", [0, 1])
def test_neighbor_sum_refuses_nodes_that_are_not_there(bad, end):
    edges = EDGES.clone()
    edges[end, 2] = bad
    with pytest.raises(IndexError, match="none of 5"):
        neighbor_sum(torch.ones(5, 3), edges)
