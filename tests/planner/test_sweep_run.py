"""Points answered by processes, a cluster or here; what a journal keeps, mends and refuses; which point is best."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.errors import OutputError, UnsupportedError
from datahall.events.progress import reported
from datahall.planner.compare.lead import Lead
from datahall.planner.sweep import estimate
from datahall.planner.sweep.best import ranking
from datahall.planner.sweep.grid import Grid
from datahall.planner.sweep.journal import Journal
from datahall.planner.sweep.processes import answered
from datahall.planner.sweep.run import Work, run

FILE = 'version = 1\nask = "show fit"\nmodel = "qwen3-0.6b"\n[deployment]\nchip = "l40s"\n'


def work(num: int = 12) -> Work:
    shipped = Path(sys.modules["datahall"].__file__ or "").parent / "catalog" / "data"
    context = {
        "verb": "show fit",
        "path": "a.toml",
        "text": FILE,
        "shipped": str(shipped),
        "extra": [],
        "user": False,
    }
    return Work(
        place="answers.sweep.point:answerer",
        context=msgspec.json.encode(context),
        num_points=num,
        point=lambda index: b'{"batch":%d}' % (index + 1),
    )


@pytest.fixture(scope="module")
def alone() -> list[bytes]:
    return run(work(), Journal(None, "", 12), "1")


def test_processes_answer_as_one_does(alone: list[bytes]) -> None:
    assert run(work(), Journal(None, "", 12), "3") == alone


def test_a_cluster_answers_as_one_does(alone: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray as far as it is asked: what is remote runs when it is waited for, the last that was asked first."""
    waiting: dict[int, Callable[[], object]] = {}

    def remote(function: Callable[..., object]) -> SimpleNamespace:
        def ask(*words: object) -> int:
            waiting[len(waiting)] = lambda: function(*words)
            return len(waiting) - 1

        return SimpleNamespace(remote=ask)

    addresses: list[object] = []
    ray = SimpleNamespace(
        init=lambda address, **_: addresses.append(address),
        remote=remote,
        cluster_resources=lambda: {"CPU": 2.0},
        wait=lambda asked, num_returns: (asked[-num_returns:], asked[:-num_returns]),
        get=lambda done: [waiting[one]() for one in done],
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    assert run(work(), Journal(None, "", 12), "ray") == alone
    assert run(work(), Journal(None, "", 12), "ray://head:10001") == alone
    assert addresses == [None, "ray://head:10001"]


def test_without_ray_it_is_said_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UnsupportedError, match="Ray is not installed") as caught:
        run(work(), Journal(None, "", 12), "ray")
    assert "datahall[ray]" in caught.value.hint


def test_a_process_that_dies_names_its_point() -> None:
    """As one that runs out of memory: here the context is none."""
    with pytest.raises(RuntimeError, match="at the point"):
        list(answered("answers.sweep.point:answerer", b"{}", [(0, b'{"batch":1}')], 1))


def test_a_journal_is_taken_up_where_it_was_left(tmp_path: Path) -> None:
    path = tmp_path / "a.points"
    with Journal(path, "key", 5) as journal:
        journal.keep(3, b'{"a":1}')
        journal.keep(0, b'{"a":2}')
    with Journal(path, "key", 5) as journal:
        assert journal.found == {3: b'{"a":1}', 0: b'{"a":2}'}


@given(cut=st.integers(0, 200))
def test_a_torn_journal_is_mended(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """Wherever it was torn: whole lines stay, the rest is answered again, and it can be added to."""
    path = tmp_path_factory.mktemp("torn") / "a.points"
    with Journal(path, "key", 9) as journal:
        for point in range(9):
            journal.keep(point, b'{"a":%d}' % point)
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    with Journal(path, "key", 9) as journal:
        known = dict(journal.found)
        assert list(known) == list(range(len(known)))
        assert len(known) == max(0, whole[:cut].count(b"\n") - 1)
        for point in range(len(known), 9):
            journal.keep(point, b'{"a":%d}' % point)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(("key", "num"), [("other", 5), ("key", 6)])
def test_a_journal_of_another_sweep_is_left_alone(tmp_path: Path, key: str, num: int) -> None:
    path = tmp_path / "a.points"
    with Journal(path, "key", 5) as journal:
        journal.keep(0, b"{}")
    before = path.read_bytes()
    with pytest.raises(OutputError, match="another sweep"):
        Journal(path, key, num)
    assert path.read_bytes() == before


def test_a_point_that_the_sweep_does_not_have_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b'{"sweep":"k","points":2}\n{"point":0,"found":1}\n{"point":7,"found":1}\n')
    with Journal(path, "k", 2) as journal:
        assert set(journal.found) == {0}


def test_eight_is_a_fifth_less_than_ten_and_ten_a_quarter_more_than_eight() -> None:
    least = ranking(Lead("x", True), [10.0, None, 8.0, 8.0])
    assert least is not None
    assert (least.places, least.margin_fraction, least.num_others, least.next_place) == (
        (2, 3, 0),
        -0.2,
        1,
        0,
    )
    most = ranking(Lead("x", False), [10.0, 8.0])
    assert most is not None
    assert most.margin_fraction == 0.25


def test_all_points_take_as_long_as_the_first_on_every_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 points of 2 s on four cores: 50 s."""
    ticks = iter((0.0, 2.0))
    asked = SimpleNamespace(place="x", context=b"", num_points=100, point=lambda *_: b"")
    monkeypatch.setattr(estimate, "answerer", lambda *_: lambda *_: None)
    monkeypatch.setattr(estimate, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(estimate, "num_cores", lambda: 4)
    assert estimate.estimated_s(asked) == (2.0, 50.0)  # type: ignore[arg-type]


def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("Chapter one")
    with pytest.raises(OutputError, match="is not a sweep's"):
        Journal(path, "key", 5)
    assert path.read_text() == "Chapter one"


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_every_point_is_there_once(sides: list[int]) -> None:
    grid = Grid(tuple(sides))
    points = [grid.at(index) for index in range(grid.num)]
    assert points == sorted(set(points))


@given(st.lists(st.one_of(st.none(), st.floats(0.1, 10.0)), min_size=1), st.booleans())
def test_the_best_is_no_worse_than_any(values: list[float | None], least: bool) -> None:
    found = ranking(Lead("step_s", least), values)
    known = [one for one in values if one is not None]
    assert sorted(found.values, reverse=not least) == list(found.values)
    assert sorted(found.values) == sorted(known)
    assert [values[place] for place in found.places] == list(found.values)


def test_how_far_it_is_is_said_at_the_pace_of_all_but_the_first(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    times = iter([0.0, 5.0, 6.0, 7.0, 8.0])
    assert list(reported("abcd", 10, 2, lambda: next(times))) == list("abcd")
    assert caplog.messages[0] == "4 of 10 points; the others take about 6 s, Ctrl-C stops it"
