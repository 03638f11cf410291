"""What somebody saw and printed of a technique, and where: beside a figure of ours, never an input of one."""

from __future__ import annotations

from importlib import resources

import msgspec

from datahall.breakdown import Source


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody saw of a technique, and where it is printed."""

    of: str  # the name of a rung
    says: str
    by: str
    date: str

    @property
    def source(self) -> Source:
        return Source(self.by, self.date, "measured")

    @property
    def named(self) -> str:
        """What was seen, with who says so: "… (Lin et al., 2017)"."""
        author = self.by.partition(",")[0]
        return f"{self.says} ({author}, {self.date[:4]})"


class _Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fact: tuple[Seen, ...]


def read_seen(package: str, path: str) -> tuple[Seen, ...]:
    """All that a room ships of it."""
    text = resources.files(package).joinpath(path).read_bytes()
    return msgspec.toml.decode(text, type=_Facts).fact
