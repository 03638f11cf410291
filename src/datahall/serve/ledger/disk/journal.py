"""What was admitted and settled, written before anything is sent upstream: a file that outlives the process.

A record is handed to the kernel by one `pwrite`, so that it is there after SIGKILL; SQLite has it, on the disk, within
one group commit, after which the file is let go.  Space is taken from the disk ahead, and of it enough is kept to
settle all that is open: a disk that fills up stops what would begin, and loses nothing that has begun.

A frame is its length, the CRC-32 of the number of its file and of what follows, and a record in MessagePack.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from zlib import crc32

import msgspec

from datahall.serve.ledger.money import NOTHING, Usage

SEGMENT_BYTES = 1 << 22
FRAME_BYTES = 512  # the longest: names of models are bounded
_HEAD = Struct("<II")


class Reserved(msgspec.Struct, frozen=True, array_like=True, tag="r", gc=False):
    """A request was let in, at most for so much."""

    request: int
    key: int
    model: str
    admitted_ns: int
    usage: Usage
    nano_usd: int


class Settled(msgspec.Struct, frozen=True, array_like=True, tag="s", gc=False):
    """A request came to its end, and this is what it took; one without a number was answered from a cache."""

    request: int
    key: int
    model: str
    admitted_ns: int
    outcome: str
    usage: Usage
    nano_usd: int
    wasted_nano_usd: int = 0  # of attempts that answered nobody
    saved: Usage = NOTHING  # what a cache spared
    saved_nano_usd: int = 0


Record = Reserved | Settled


class Position(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A place between two records: the number of a segment, and bytes into it."""

    segment: int
    offset: int


class FullError(OSError):
    """No space is left for a record."""


class Journal:
    """Segments of one size in a folder; one is written, the next lies ready."""

    def __init__(self, folder: Path, segment: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = folder
        self.segment_bytes = segment_bytes
        self._encode = msgspec.msgpack.Encoder().encode
        self._segment = segment
        self._file = self._open(segment)
        self._offset = 0
        self._spare: int | None = None  # its file
        self._full: list[int] = []  # files of segments that may not be on the disk yet
        self.prepare()

    @property
    def position(self) -> Position:
        return Position(self._segment, self._offset)

    @property
    def left_bytes(self) -> int:
        """What surely fits: no frame is cut in two, so the end of a segment may stay empty."""
        ready = self.segment_bytes - FRAME_BYTES if self._spare is not None else 0
        return max(0, self.segment_bytes - FRAME_BYTES - self._offset) + ready

    def append(self, record: Record) -> None:
        """Hand a record to the kernel."""
        payload = self._encode(record)
        frame = _HEAD.pack(len(payload), crc32(payload, self._segment)) + payload
        if self._offset + len(frame) > self.segment_bytes:
            self._turn()
            frame = _HEAD.pack(len(payload), crc32(payload, self._segment)) + payload
        if os.pwrite(self._file, frame, self._offset) != len(frame):
            raise FullError(f"a record of the journal in {self.folder} was cut short")
        self._offset += len(frame)

    def prepare(self) -> None:
        """Take space for the next segment, if there is none; called where waiting for a disk harms nobody."""
        if self._spare is None:
            self._spare = self._open(self._segment + 1)

    def sync(self) -> None:
        """Have what is written on the disk."""
        while self._full:
            file = self._full.pop(0)
            os.fdatasync(file)
            os.close(file)
        os.fdatasync(self._file)

    def drop_before(self, segment: int) -> None:
        """Let go of segments of which all is in the database."""
        for path, number in segments(self.folder):
            if number < segment:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Give the files back."""
        for file in (*self._full, self._file, *([self._spare] if self._spare is not None else ())):
            os.close(file)
        self._full, self._spare = [], None

    def _turn(self) -> None:
        if self._spare is None:
            raise FullError(f"no space for the journal in {self.folder}")
        self._full.append(self._file)
        self._file, self._spare = self._spare, None
        self._segment += 1
        self._offset = 0

    def _open(self, segment: int) -> int:
        path = self.folder / f"{segment:08d}.journal"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file, 0, self.segment_bytes)
            else:
                os.pwrite(file, bytes(self.segment_bytes), 0)
        except OSError:
            os.close(file)
            path.unlink(missing_ok=True)
            raise
        return file


def segments(folder: Path) -> list[tuple[Path, int]]:
    """The files of a journal with their numbers, oldest first."""
    return [(path, int(path.stem)) for path in sorted(folder.glob("*.journal"))]


def records(folder: Path, start: Position) -> Iterator[Record]:
    """What was written from a place on; a frame that was cut short by the end of its writer is the last."""
    decode = msgspec.msgpack.Decoder(Record).decode
    for path, number in segments(folder):
        if number < start.segment:
            continue
        content = path.read_bytes()
        offset = start.offset if number == start.segment else 0
        while offset + _HEAD.size <= len(content):
            length, checksum = _HEAD.unpack_from(content, offset)
            payload = content[offset + _HEAD.size : offset + _HEAD.size + length]
            if not length or len(payload) < length or crc32(payload, number) != checksum:
                break
            yield decode(payload)
            offset += _HEAD.size + length
