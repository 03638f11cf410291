"""Kills, torn files, full disks, locks, old tables: what the books say after each."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.serve.ledger.books import START_NS, TEN, key_in, opened, totals

from datahall.errors import ServingError
from datahall.serve.ledger.account import Refusal
from datahall.serve.ledger.accounts import Reservation
from datahall.serve.ledger.desk import desk
from datahall.serve.ledger.disk.journal import Journal, Position, Reserved, records, segments
from datahall.serve.ledger.disk.migrations import STEPS, migrate
from datahall.serve.ledger.ledger import Ledger
from datahall.serve.ledger.money import Usage

NOW = START_NS


def reserved(number: int) -> Reserved:
    return Reserved(number, 1, "small", NOW, TEN, 30_000)


@pytest.mark.parametrize("cut", [1, 7, 8, 20])
def test_a_record_that_was_cut_short_is_the_last_and_those_before_it_count(tmp_path: Path, cut: int) -> None:
    journal = Journal(tmp_path, 1)
    for number in range(3):
        journal.append(reserved(number))
    end = journal.position.offset
    journal.close()
    path, _ = segments(tmp_path)[0]
    with path.open("r+b") as file:
        file.seek(end - cut)
        file.write(bytes(cut))
    assert [one.request for one in records(tmp_path, Position(1, 0))] == [0, 1]


def test_a_journal_goes_on_over_its_segments(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 1, segment_bytes=1024)
    for number in range(50):
        journal.append(reserved(number))
        journal.prepare()
    assert [one.request for one in records(tmp_path, Position(0, 0))] == list(range(50))
    middle = journal.position
    journal.append(reserved(50))
    assert [one.request for one in records(tmp_path, middle)] == [50]
    journal.sync()
    journal.drop_before(middle.segment)
    assert segments(tmp_path)[0][1] == middle.segment
    journal.close()


def test_what_an_old_segment_left_is_not_read_as_part_of_a_new_one(tmp_path: Path) -> None:
    old = Journal(tmp_path, 1)
    old.append(reserved(1))
    old.close()
    (tmp_path / "00000001.journal").rename(tmp_path / "00000005.journal")
    assert list(records(tmp_path, Position(5, 0))) == []


WORK = """
    import sys
    from pathlib import Path
    sys.path.insert(0, {root!r})
    from tests.serve.ledger.books import START_NS, TEN, opened
    from datahall.serve.ledger.account import Refusal
    from datahall.serve.ledger.group_commit import GroupCommit
    from datahall.serve.ledger.money import Usage

    ledger = opened(Path({path!r}))
    (account,) = ledger._accounts.of_keys.values()
    key = account.key
"""


def started(path: Path, work: str, **more: object) -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[3])
    code = textwrap.dedent(WORK.format(root=root, path=str(path))) + textwrap.dedent(work)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, **more)  # type: ignore[call-overload,no-any-return]


def test_after_sigkill_under_load_every_request_that_was_let_in_is_settled_or_charged_and_marked(
    tmp_path: Path,
) -> None:
    """What the process has said it did before it was killed is what the books say, to the nano-dollar."""
    key, _ = key_in(tmp_path)
    process = started(
        tmp_path,
        """
        def clock():
            sys.stdout.write("commit\\n")
            return START_NS

        commits = GroupCommit(ledger, clock)
        held, number = [], 0
        while True:
            one = ledger.admit(key, "small", TEN, START_NS)
            sys.stdout.write(f"in {one.request}\\n")
            held.append(one)
            number += 1
            if number % 3:
                done = held.pop(0)
                sys.stdout.write(f"try {done.request}\\n")
                ledger.settle(done, Usage(10, 0, number % 10), "answered")
                sys.stdout.write(f"out {done.request} {number % 10}\\n")
            sys.stdout.flush()
        """,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4000)]
    while lines.count("commit\n") < 3:
        lines.append(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()
    lines += rest[: rest.rfind("\n") + 1].splitlines()
    process.wait()
    process.stdout.close()
    said = [line.split() for line in lines]
    let_in = {line[1] for line in said if line[0] == "in"}
    out = {line[1]: int(line[2]) for line in said if line[0] == "out"}
    tried = {line[1] for line in said if line[0] == "try"} - set(out)

    opened(tmp_path).close(NOW)
    found = totals(tmp_path)
    settled, unsettled = found[key.id, "small", "answered"], found[key.id, "small", "unsettled"]
    assert len(let_in) > 1000
    # the last may have been let in, or settled, without a word of it having come through
    assert len(let_in) <= settled[0] + unsettled[0] <= len(let_in) + 1
    assert len(out) <= settled[0] <= len(out) + len(tried)
    assert unsettled[2] == unsettled[0] * 30_000
    if settled[0] == len(out):
        assert settled[2] == sum(10_000 + 2_000 * completion for completion in out.values())
    marked = sqlite3.connect(tmp_path / "ledger.sqlite")
    numbers = {str(number) for (number,) in marked.execute("select request from unsettled")}
    marked.close()
    assert let_in - set(out) - tried <= numbers
    assert not numbers & set(out)


def test_books_are_the_same_however_often_a_recovery_is_cut_off(tmp_path: Path) -> None:
    key, _ = key_in(tmp_path)
    ledger = opened(tmp_path)
    assert isinstance(ledger.admit(key, "small", TEN, NOW), Reservation)
    ledger.commit(NOW)
    assert isinstance(ledger.admit(key, "small", TEN, NOW), Reservation)
    ledger.drop()
    kept = {path: path.read_bytes() for path, _ in segments(tmp_path)}
    opened(tmp_path).drop()
    for path, content in kept.items():
        path.write_bytes(content)  # as if it had been killed before it let go of them
    opened(tmp_path).close(NOW)
    assert totals(tmp_path) == {(key.id, "small", "unsettled"): (2, 40, 60_000)}


def test_a_database_that_another_holds_stops_nobody_and_is_said(tmp_path: Path) -> None:
    key, _ = key_in(tmp_path)
    ledger = opened(tmp_path)
    other = sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)
    other.execute("begin immediate")
    for _ in range(3):
        one = ledger.admit(key, "small", TEN, NOW)
        assert isinstance(one, Reservation)
        ledger.settle(one, TEN, "answered")
        assert not ledger.commit(NOW)
        assert ledger.trouble == "the ledger cannot be written: database is locked"
    other.execute("rollback")
    other.close()
    assert ledger.commit(NOW)
    assert ledger.trouble == ""
    ledger.close(NOW)
    assert totals(tmp_path) == {(key.id, "small", "answered"): (3, 60, 90_000)}


def test_on_a_full_disk_nothing_new_begins_and_all_that_has_begun_is_settled(tmp_path: Path) -> None:
    """The limit on the size of files is the nearest to a full disk that a process can give itself."""
    key, _ = key_in(tmp_path)
    process = started(
        tmp_path,
        """
        import resource, signal
        ledger.close(START_NS)
        ledger = opened(Path({path!r}), segment_bytes=16384)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384 * 100))
        ledger._journal._spare = None  # as where the disk was full before it was laid ready
        held = []
        while not isinstance(one := ledger.admit(key, "small", TEN, START_NS), Refusal):
            held.append(one)
        print(len(held), one.status, one.code, ledger.commit(START_NS), ledger.trouble, sep=";")
        for one in held:
            ledger.settle(one, TEN, "answered")
        print(ledger.trouble)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16384 * 100, 16384 * 100))
        print(ledger.commit(START_NS), ledger.trouble, sep=";")
        ok = ledger.admit(key, "small", TEN, START_NS)
        print(type(ok).__name__, flush=True)
        import os
        os.kill(os.getpid(), signal.SIGKILL)
        """.replace("{path!r}", repr(str(tmp_path))),
    )
    out, _ = process.communicate(timeout=60)
    first, *others = out.splitlines()
    count, status, code, written, trouble = first.split(";")
    assert int(count) > 10
    assert (status, code, written) == ("503", "ledger_unavailable", "False")
    assert "cannot be written" in trouble
    assert others[1:] == ["True;", "Reservation"]
    opened(tmp_path).close(NOW)
    found = totals(tmp_path)
    assert found[key.id, "small", "answered"] == (int(count), 20 * int(count), 30_000 * int(count))
    assert found[key.id, "small", "unsettled"] == (1, 20, 30_000)


def test_two_gateways_do_not_keep_one_ledger(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    with pytest.raises(ServingError, match="another gateway keeps its ledger"):
        opened(tmp_path)
    ledger.close(NOW)
    opened(tmp_path).close(NOW)


@contextmanager
def files_of_at_most(num_bytes: int) -> Iterator[None]:
    """A disk that lets no file grow beyond some bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("num_bytes", [0, 4096, 60_000, 1 << 20])
def test_a_start_on_a_full_disk_says_so_and_leaves_nothing_in_the_way_of_the_next(
    tmp_path: Path, num_bytes: int
) -> None:
    with files_of_at_most(num_bytes), pytest.raises(ServingError, match=str(tmp_path)) as said:
        opened(tmp_path)
    assert "space" in said.value.hint
    assert "rollback" not in said.value.message
    ledger = opened(tmp_path)
    ledger.close(NOW)


def test_a_start_waits_for_who_looks_at_the_books_and_is_let_in_then(tmp_path: Path) -> None:
    key_in(tmp_path)
    started: list[Ledger] = []
    with desk(str(tmp_path)) as looking:
        assert not looking.is_running
        start = threading.Thread(target=lambda: started.append(opened(tmp_path)))
        start.start()
        start.join(0.1)
        assert start.is_alive()
    start.join()
    with desk(str(tmp_path)) as looking:
        assert looking.is_running
    started[0].close(NOW)


def test_two_who_look_at_the_books_do_not_take_each_other_for_a_gateway(tmp_path: Path) -> None:
    key_in(tmp_path)
    seen: list[bool] = []

    def look() -> None:
        with desk(str(tmp_path)) as looking:
            seen.append(looking.is_running)

    with desk(str(tmp_path)):
        other = threading.Thread(target=look)
        other.start()
        other.join(0.1)
    other.join()
    assert seen == [False]


def test_numbers_of_requests_are_of_one_start(tmp_path: Path) -> None:
    key, _ = key_in(tmp_path)
    numbers = set()
    for _ in range(3):
        ledger = opened(tmp_path)
        for _ in range(3):
            one = ledger.admit(key, "small", TEN, NOW)
            assert isinstance(one, Reservation)
            numbers.add(one.request)
            ledger.release(one)
        ledger.drop()
    assert len(numbers) == 9


def test_state_is_for_its_owner_alone(tmp_path: Path) -> None:
    opened(tmp_path / "new").close(NOW)
    assert os.stat(tmp_path / "new").st_mode & 0o077 == 0
    for name in ("pepper", "ledger.sqlite"):
        assert os.stat(tmp_path / "new" / name).st_mode & 0o077 == 0


def test_another_pepper_is_refused(tmp_path: Path) -> None:
    opened(tmp_path).close(NOW)
    (tmp_path / "pepper").write_bytes(b"x" * 32)
    with pytest.raises(ServingError, match="is not the pepper"):
        opened(tmp_path)


def test_a_file_that_is_no_ledger_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"not a database" * 100)
    with pytest.raises(ServingError, match="cannot be opened: file is not a database"):
        opened(tmp_path)


@pytest.mark.parametrize("form", range(len(STEPS)))
def test_tables_of_every_form_become_the_newest(tmp_path: Path, form: int) -> None:
    old = sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)
    migrate(old, "", STEPS[:form])
    old.close()
    key, _ = key_in(tmp_path)
    opened(tmp_path).close(NOW)
    assert key.id == 1


def test_tables_of_a_later_form_are_left_alone(tmp_path: Path) -> None:
    opened(tmp_path).close(NOW)
    database = sqlite3.connect(tmp_path / "ledger.sqlite")
    database.execute("pragma user_version = 99")
    database.close()
    with pytest.raises(ServingError, match="is of form 99"):
        opened(tmp_path)


def test_a_step_that_fails_changes_nothing(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "x.sqlite", isolation_level=None)
    steps = (*STEPS, ("create table more (x integer)", "nonsense"))
    with pytest.raises(sqlite3.OperationalError):
        migrate(database, "", steps)
    assert database.execute("pragma user_version").fetchone() == (len(STEPS),)
    assert not database.execute("select * from sqlite_master where name = 'more'").fetchall()
    database.close()


def test_reading_the_books_holds_up_nobody(tmp_path: Path) -> None:
    """A reader of the tables and the writer do not wait for each other."""
    key, _ = key_in(tmp_path)
    ledger = opened(tmp_path)
    reader = sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)
    reader.execute("begin")
    reader.execute("select * from usage").fetchall()
    one = ledger.admit(key, "small", Usage(1), NOW)
    assert not isinstance(one, Refusal)
    assert ledger.commit(NOW)
    reader.close()
    ledger.close(NOW)
