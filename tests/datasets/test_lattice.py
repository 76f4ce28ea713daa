import numpy as np
import pytest

from skident.datasets._lattice import lattice


def naive_bonds(shape, periodic):
    """Bonds by the definition: each site with the next one along each axis."""
    bonds = []
    for site in np.ndindex(*shape):
        for axis, side in enumerate(shape):
            other = list(site)
            other[axis] += 1
            if other[axis] == side:
                if not periodic or side == 1:
                    continue
                other[axis] = 0
            pair = np.ravel_multi_index(site, shape), np.ravel_multi_index(other, shape)
            bonds.append(pair)
    return bonds


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize(
    "shape", [(1,), (2,), (5,), (3, 3), (1, 4), (2, 3), (2, 2, 2), (3, 1, 2), (3, 4, 5)]
)
def test_bonds_and_neighbours(shape, periodic):
    graph = lattice(shape, periodic, -1.0)
    expected = naive_bonds(shape, periodic)
    assert sorted(map(tuple, graph.bonds.tolist())) == sorted(expected)
    n_sites = int(np.prod(shape))
    for site in range(n_sites):
        around = sorted(j for j in graph.neighbours[site] if j < n_sites)
        ends = [b for a, b in expected if a == site]
        ends += [a for a, b in expected if b == site]
        assert around == sorted(ends)
    coordinates = np.array(list(np.ndindex(*shape)))
    np.testing.assert_array_equal(graph.staggering, (-1) ** coordinates.sum(axis=1))
    assert (lattice(shape, periodic, 1.0).staggering == 1).all()


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize(
    "shape", [(1,), (5,), (2, 3), (4, 1), (1, 4), (2, 2, 2), (3, 1, 2), (3, 4, 5)]
)
def test_rows_planes_and_wraps_are_the_bonds(shape, periodic):
    graph = lattice(shape, periodic, 1.0)
    n_sites = int(np.prod(shape))
    one, width, plane = graph.sides
    assert one == 1
    bonds = [*map(tuple, graph.wraps.tolist())]
    bonds += [(i - 1, i) for i in range(n_sites) if i % width]
    bonds += [(i - width, i) for i in range(n_sites) if i % plane >= width]
    bonds += [(i - plane, i) for i in range(plane, n_sites)]
    assert sorted(bonds) == sorted(map(tuple, graph.bonds.tolist()))
    assert graph.wraps.flags.c_contiguous
