import numpy as np
import pytest
from scipy import sparse

from skident.datasets import lattice_graph, make_couplings


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize(
    "shape", [1, 2, 7, (3, 4), (2, 5), (1, 4), (3, 2, 4), (2, 2, 2)]
)
def test_neighbours_by_definition(shape, periodic):
    graph = lattice_graph(shape, periodic=periodic).toarray()
    sides = np.atleast_1d(shape)
    expected = np.zeros_like(graph)
    for i, here in enumerate(np.ndindex(*sides)):
        for axis, side in enumerate(sides):
            there = list(here)
            there[axis] += 1
            if (there[axis] == side and not periodic) or side == 1:
                continue
            there[axis] %= side
            j = np.ravel_multi_index(there, sides)
            expected[i, j] += 1
            expected[j, i] += 1
    np.testing.assert_array_equal(graph, expected)


COMPLETE = np.ones((400, 400)) - np.eye(400)


def upper(couplings):
    matrix = couplings.toarray()
    np.testing.assert_array_equal(matrix, matrix.T)
    return matrix[np.triu_indices(len(matrix), 1)]


def test_gaussian_couplings_have_their_moments():
    J = upper(make_couplings(COMPLETE, mean=0.3, scale=2.0, random_state=0))
    n = len(J)
    z = (J - 0.3) / 2
    assert abs(z.mean()) < 5.4 / np.sqrt(n)
    assert abs((z**2).mean() - 1) < 5.4 * np.sqrt(2 / n)
    assert abs((z**4).mean() - 3) < 5.4 * np.sqrt(96 / n)
    assert abs(np.corrcoef(J[:-1], J[1:])[0, 1]) < 5.4 / np.sqrt(n)


@pytest.mark.parametrize("mean", [0.0, 0.5, -2.0])
def test_binary_couplings_have_their_share(mean):
    J = upper(
        make_couplings(
            COMPLETE, distribution="binary", mean=mean, scale=2.0, random_state=0
        )
    )
    assert set(np.unique(abs(J))) == {2.0}
    assert abs(J.mean() - mean) <= 5.4 * np.sqrt((4 - mean**2) / len(J))


def test_couplings_stand_on_the_edges_of_any_kind_of_graph():
    graph = lattice_graph((3, 3), periodic=False)
    expected = make_couplings(graph, random_state=1).toarray()
    np.testing.assert_array_equal(expected != 0, graph.toarray() != 0)
    for kind in (
        graph.toarray(), graph.toarray().tolist(), graph.astype(bool),
        graph.astype(np.int8), sparse.coo_matrix(graph), sparse.csc_array(graph),
        sparse.lil_array(7.5 * graph),
    ):  # fmt: skip
        np.testing.assert_array_equal(
            make_couplings(kind, random_state=1).toarray(), expected
        )


def test_random_states():
    graph = lattice_graph((3, 3))
    first = make_couplings(graph, random_state=0).toarray()
    assert (first != make_couplings(graph, random_state=1).toarray()).any()
    assert (first != make_couplings(graph).toarray()).any()
    states = [np.random.RandomState(2), np.random.RandomState(2)]
    one, two = (make_couplings(graph, random_state=s).toarray() for s in states)
    np.testing.assert_array_equal(one, two)


def test_graphs_without_edges():
    for n in (1, 4):
        assert make_couplings(np.zeros((n, n))).shape == (n, n)
        assert make_couplings(np.zeros((n, n)), distribution="binary").nnz == 0
    assert make_couplings(lattice_graph(3), scale=0, distribution="binary").nnz == 6


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"graph": np.ones(4)}, r"graph must have shape .*, got \(4,\)"),
        ({"graph": np.ones((2, 3))}, r"got \(2, 3\)"),
        ({"graph": np.ones((2, 2))}, "zero on the diagonal .* in row 0, column 0"),
        ({"graph": [[0, 1], [2, 0]]}, "symmetric, but has 1.0 in row 0"),
        ({"graph": [["a"]]}, "real numbers"),
        ({"distribution": "uniform"}, "'distribution' parameter"),
        ({"distribution": "binary", "mean": 2}, "mean must be at most scale=1.0"),
        ({"mean": np.nan}, "'mean' parameter"),
        ({"scale": -1}, "'scale' parameter"),
        ({"random_state": -1}, "'random_state' parameter"),
    ],
)  # fmt: skip
def test_bad_input_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        make_couplings(**{"graph": lattice_graph(3), **changes})


@pytest.mark.parametrize("shape", [0, (2, 0), (2, 2, 2, 2), (2.5, 2), "ab"])
def test_bad_shape_is_named(shape):
    with pytest.raises(ValueError, match="shape"):
        lattice_graph(shape)
