"""A barrier is an all-reduce of one number, and an answer's table has what its words compare."""

from __future__ import annotations

import pytest

import datahall as dh
from datahall.answer import Answer

MACHINES = (("h100-sxm", 8), ("h100-sxm", 256), ("gb200", 72), ("gb200", 144), ("mi300x", 8), ("mi300x", 128))


def table(answer: Answer) -> dict[str, float]:
    """Times by algorithm, of the table that is shown first."""
    return {str(row[0]): float(row[1]) for row in answer.tables[0].rows}  # type: ignore[arg-type]


@pytest.mark.parametrize(("chip", "chips"), MACHINES)
def test_a_barrier_runs_what_an_all_reduce_of_four_bytes_does(chip: str, chips: int) -> None:
    """72 GB200 ran a ring of 142 steps for 163 µs, where their switch adds up in 23 µs."""
    barrier = dh.show_collective(collective="barrier", chip=chip, chips=chips)
    tiny = dh.show_collective(collective="all-reduce", size="4B", chip=chip, chips=chips)
    assert barrier.results["time_s"] == tiny.results["time_s"]
    assert barrier.results["algorithm"] == tiny.results["algorithm"]


@pytest.mark.parametrize(("chip", "chips"), [("mi300x", 128), ("h100-sxm", 256), ("b200-sxm", 64)])
def test_a_larger_domain_makes_no_barrier_slower(chip: str, chips: int) -> None:
    """128 MI300X in one domain passed a number on 254 times, and in two domains 128 times."""
    domains = [size for size in (8, 16, 32, 64, 128, 256) if size <= chips]
    took = [
        dh.show_collective(collective="barrier", on="fat-tree", chip=chip, chips=chips, domain=size).results[
            "time_s"
        ]
        for size in domains
    ]
    assert took == sorted(took, reverse=True)  # type: ignore[type-var]


@pytest.mark.parametrize("collective", ["all-reduce", "all-gather", "barrier"])
@pytest.mark.parametrize(("chip", "chips"), [*MACHINES, ("h100-sxm", 512), ("b200-sxm", 1024)])
def test_the_table_has_what_the_note_compares(collective: str, chip: str, chips: int) -> None:
    """Of 512 H100 a note named an estimate of tree Simple, and the table had tree LL128 alone."""
    sizes = [None] if collective == "barrier" else ["64kB", "16MB", "1GB"]
    for size in sizes:
        given = {} if size is None else {"size": size}
        found = dh.show_collective(collective=collective, chip=chip, chips=chips, **given)
        notes = [note for note in found.notes if note.startswith("NCCL takes")]
        for note in notes:
            named = note.split(" of ")[-1].split(";")[0]
            assert named in table(found), (size, note)
