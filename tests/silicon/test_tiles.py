"""Tiles of matrix products: whole steps of the tensor instructions, no more than the registers hold."""

from __future__ import annotations

import numpy as np

from datahall.silicon.gemm import MAX_ACCUMULATORS, coarse_tiles, fine_tiles

REGISTERS = 65536  # of 32 bits, of a multiprocessor since Kepler


def test_sides_are_whole_steps_of_eight_columns() -> None:
    """A matrix instruction multiplies eight columns at least, and a warp group 64 rows (PTX ISA: mma, wgmma)."""
    for tiles in (fine_tiles(), coarse_tiles()):
        assert (tiles % 8 == 0).all()
        assert len({tuple(one) for one in tiles.tolist()}) == len(tiles)
    assert (coarse_tiles() % 32 == 0).all()
    assert fine_tiles()[:, 0].min() == coarse_tiles()[:, 0].min() == 64


def test_sums_of_a_tile_fit_into_the_registers_beside_the_operands() -> None:
    fine = fine_tiles()
    assert MAX_ACCUMULATORS < REGISTERS
    assert fine.prod(axis=1).max() <= MAX_ACCUMULATORS
    assert coarse_tiles().prod(axis=1).max() <= MAX_ACCUMULATORS


def test_earlier_libraries_have_sides_of_powers_of_two_either_way() -> None:
    coarse = {tuple(one) for one in coarse_tiles().astype(int).tolist()}
    assert all(side & (side - 1) == 0 for one in coarse for side in one)
    assert {(m, n) for n, m in coarse if n >= 64 and m >= 64} <= coarse


def test_a_later_library_has_what_earlier_ones_have_and_every_square_that_fits() -> None:
    fine = {tuple(one) for one in fine_tiles().tolist()}
    assert {tuple(one) for one in coarse_tiles().tolist()} < fine
    shared = {n for n, _ in fine} & {m for _, m in fine}
    assert {(side, side) for side in shared if side * side <= MAX_ACCUMULATORS} <= fine
    assert max(n * m for n, m in fine) == MAX_ACCUMULATORS  # one that is as large as can be


def test_small_batches_have_small_tiles() -> None:
    """Eight rows, a step more, and so on: a batch of few tokens does not fill a tile of many."""
    heights = np.unique(fine_tiles()[:, 1])
    assert heights[:4].tolist() == [8, 16, 24, 32]
    widths = np.unique(fine_tiles()[fine_tiles()[:, 1] <= 64, 0])
    assert widths.max() == 512
