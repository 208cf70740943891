import pytest
import torch

from kergnn import EgoGraphs
from kergnn.explain import edge_contributions, node_contributions, walk_contributions
from kergnn.explain.contributions import walk_states
from kergnn.kernels import get_kernel
from kergnn.testing import (
    ego_graph,
    enumerated_contributions,
    random_filters,
    random_graph,
)

KERNELS = ["rw", "rw-step", "drw"]
CASES = [(1, 0.0, 1, None), (2, 0.0, 1, None), (4, 0.5, 1, None), (5, 0.4, 2, 3), (3, 1.0, 1, None)]


def make(kernel, case=2, filter_size=3):
    num_nodes, probability, num_hops, max_nodes = CASES[case]
    x, edge_index = random_graph(num_nodes, probability, seed=case)
    adjacency, attributes = random_filters(2, filter_size, seed=case)
    ego = EgoGraphs.from_edge_index(edge_index, num_nodes, num_hops, max_nodes)
    generator = torch.Generator().manual_seed(case)
    extra = {}
    if kernel == "drw":
        shape = (2, num_hops + 1, filter_size)
        extra["hop_weight"] = torch.randn(shape, generator=generator, dtype=torch.float64)
    return x, edge_index, ego, adjacency, attributes, extra


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("kernel", KERNELS)
def test_nodes_edges_and_walks_equal_those_shared_out_by_hand(kernel, case):
    x, edge_index, ego, adjacency, attributes, extra = make(kernel, case)
    arguments = (kernel, x, ego, adjacency, attributes)
    nodes = node_contributions(*arguments, 3, **extra)
    edges = edge_contributions(*arguments, 3, **extra)
    row, col = ego.edge_index
    _, _, num_hops, max_nodes = CASES[case]
    for v in range(len(x)):
        members, hops, dense = ego_graph(edge_index, len(x), v, num_hops, max_nodes)
        A, start = torch.from_numpy(dense), int(ego.ptr[v])
        mine = ego.center[row] == v
        for i in range(2):
            weight = extra["hop_weight"][i, hops] if extra else None
            for p in range(4):
                wanted_nodes, wanted_edges, wanted_walks = enumerated_contributions(
                    kernel, A, x[members], adjacency[i], attributes[i], p, weight
                )
                got = nodes[p, start : start + len(members), i]
                torch.testing.assert_close(got, wanted_nodes, rtol=1e-9, atol=1e-9)
                wanted = wanted_edges[row[mine] - start, col[mine] - start]
                torch.testing.assert_close(edges[p, mine, i], wanted, rtol=1e-9, atol=1e-9)
                walks, values = walk_contributions(*arguments, p, node=v, filter=i, **extra)
                assert len(walks) == len(wanted_walks)
                for walk, value in zip(walks.tolist(), values, strict=True):
                    local = tuple(members.index(a) for a in walk)
                    assert value.item() == pytest.approx(wanted_walks[local].item(), abs=1e-9)


@pytest.mark.parametrize("kernel", [*KERNELS, "gcn"])
def test_nodes_and_edges_sum_to_the_kernel_value(kernel):
    size = 1 if kernel == "gcn" else 3
    x, _, ego, adjacency, attributes, extra = make(kernel, 3, size)
    arguments = (x, ego, adjacency, attributes, 4)
    K = get_kernel(kernel).function(*arguments, **extra)
    nodes = node_contributions(kernel, *arguments, **extra)
    total = torch.zeros_like(K).index_add(1, ego.center, nodes)
    torch.testing.assert_close(total, K, rtol=1e-9, atol=1e-9)
    edges = edge_contributions(kernel, *arguments, **extra)
    if kernel == "gcn":
        assert not edges.any()
        return
    assert not edges[0].any()
    total = torch.zeros_like(K).index_add(1, ego.center[ego.edge_index[0]], edges)
    torch.testing.assert_close(total[1:], K[1:], rtol=1e-9, atol=1e-9)
    states = walk_states(kernel, *arguments, **extra)
    torch.testing.assert_close(states.values(), K, rtol=1e-9, atol=1e-9)


def test_single_precision_sums_to_a_millionth():
    x, _, ego, adjacency, attributes, _ = make("rw", 3)
    arguments = (x.float(), ego, adjacency.float(), attributes.float(), 3)
    K = get_kernel("rw").function(*arguments)
    nodes = node_contributions("rw", *arguments)
    error = (torch.zeros_like(K).index_add(1, ego.center, nodes) - K).abs() / (1 + K.abs())
    assert error.max() < 1e-6


def test_too_many_walks_are_refused():
    x, _, ego, adjacency, attributes, _ = make("rw", 4)
    with pytest.raises(ValueError, match="more than 10 walks"):
        walk_contributions("rw", x, ego, adjacency, attributes, 3, node=0, filter=0, max_walks=10)
