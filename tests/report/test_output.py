"""A file is written whole or not at all, and what goes wrong is said."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from datahall.answer import Answer
from datahall.errors import OutputError
from datahall.report.output import format_of, write


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.html", "html"),
        ("a.JSON", "json"),
        ("a.md", "md"),
        ("a.csv", "csv"),
        ("a.txt", "table"),
        ("a", "table"),
    ],
)
def test_the_ending_chooses_the_format(name: str, form: str) -> None:
    assert format_of(Path(name)) == form


def test_an_unknown_ending_is_an_error() -> None:
    with pytest.raises(OutputError, match=r"no format goes with \.docx"):
        format_of(Path("a.docx"))


@pytest.mark.parametrize("path", [5, None, "", b"a.html"])
def test_what_is_no_path_is_an_error_that_says_what_is(path: object) -> None:
    with pytest.raises(OutputError, match="is not the path of a file"):
        Answer(kind="example", headline="It does.").save(path)  # type: ignore[arg-type]


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    write("old", target)
    write("new", target)
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_missing_folder_says_how_to_make_it(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="mkdir -p"):
        write("x", tmp_path / "no" / "a.txt")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="it is a folder"):
        write("x", tmp_path)


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """Root may write anywhere, so root becomes nobody for a while."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    yield
    os.seteuid(mine)


@pytest.mark.usefixtures("ordinary_user")
def test_no_permission() -> None:
    with pytest.raises(OutputError, match="Permission denied"):
        write("x", Path("/usr/datahall-test.txt"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk() -> None:
    with pytest.raises(OutputError, match="No space left"):
        write("x", Path("/dev/full"))


def test_what_fails_half_way_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.txt"
    write("old", target)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        write("new", target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]
