"""Where requests come from and where replicas stand, and how far apart that is."""

from __future__ import annotations

from typing import NamedTuple

from datahall.catalog.document import Value
from datahall.errors import nearest
from datahall.inference.scenario_file import Elsewhere, Place, Rule, ServingReader, number

REGION = {"name": Rule("text", "", required=True), "inside": Rule("s", 0.0), "to": Elsewhere("text")}


class Regions(NamedTuple):
    """Names, and how far apart they are, one way."""

    names: tuple[str, ...] = ()
    distance_s: tuple[tuple[float, ...], ...] = ((0.0,),)

    def shares(self, reader: ServingReader, path: Place, raw: Value) -> tuple[float, ...]:
        """How requests are spread over regions: all of them in one, or a table of shares that add up to 1."""
        if not isinstance(raw, dict):
            own = self.place(reader, path, str(raw))
            return tuple(float(place == own) for place in range(max(1, len(self.names))))
        found, num_before = [0.0] * max(1, len(self.names)), len(reader.problems)
        for name, said in raw.items():
            share = reader.quantity((*path, name), said, Rule("fraction"))
            found[self.place(reader, (*path, name), name)] = share or 0.0
        if abs(sum(found) - 1.0) > 1e-6 and len(reader.problems) == num_before:
            reader.problem(path, f"shares of regions add up to {sum(found):g}", "they add up to 1")
        return tuple(found)

    def place(self, reader: ServingReader, path: Place, name: str) -> int:
        """The number of a region; an unknown one is a problem."""
        if name in self.names:
            return self.names.index(name)
        if name and self.names:
            reader.problem(path, f'"{name}" is not a region', unknown(name, self.names))
        elif name:
            reader.problem(path, f'"{name}" is not a region', f'write [[region]] with name = "{name}"')
        elif self.names:
            reader.problem(path, '"region" is missing', f"one of {', '.join(self.names)}")
        return 0


def unknown(name: str, known: tuple[str, ...]) -> str:
    """What to write instead of a name that is none."""
    close = nearest(name, known, 1)
    return f"one of {', '.join(known)}" + (f"; did you mean {close[0]}?" if close else "")


def read_regions(reader: ServingReader) -> Regions:
    """Regions with a distance for each pair of them, said from either side."""
    rows = reader.rows("region", REGION)
    names = tuple(str(values["name"]) for _, _, values in rows)
    far: dict[tuple[str, str], float] = {}
    for place, raw, values in rows:
        own = str(values["name"])
        if not own and "name" in raw:
            reader.problem((*place, "name"), "a region without a name", 'e.g. name = "eu"')
        if names.count(own) > 1 and names.index(own) != int(place[-1] if place[1:] else 0):
            reader.problem((*place, "name"), f'two regions are named "{own}"', "give each a name of its own")
        far[own, own] = number(values["inside"])
        for other, distance_s in _distances(reader, place, raw.get("to", {}), names):
            far[own, other] = distance_s
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            if one != other and (one, other) not in far and (other, one) not in far:
                hint = f'in [[region]] "{one}": to = {{ {other} = "40 ms" }}, one way'
                reader.problem(("region", str(i)), f"no distance from {one} to {other}", hint)
    table = tuple(
        tuple(far.get((one, other), far.get((other, one), 0.0)) for other in names) for one in names
    )
    return Regions(names, table) if names else Regions()


def _distances(
    reader: ServingReader, place: Place, raw: Value, names: tuple[str, ...]
) -> list[tuple[str, float]]:
    if not isinstance(raw, dict):
        reader.problem((*place, "to"), f"to is {raw!r}", 'to = { us = "40 ms" }, one way')
        return []
    found = []
    for other, said in raw.items():
        path = (*place, "to", other)
        if other not in names:
            reader.problem(path, f'"{other}" is not a region', unknown(other, names))
            continue
        distance_s = reader.quantity(path, said, Rule("s"))
        if distance_s is not None:
            found.append((other, distance_s))
    return found
