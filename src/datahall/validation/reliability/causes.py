"""Tables of causes: what each line means in components, and their shares predicted by the tables of other sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from datahall.catalog import Catalog
from datahall.validation.measurement import Outcome, Row, RowError, unless_fitted
from datahall.validation.reliability.fleets import other_fleets, own_presets, shares
from datahall.validation.scorecard import Prediction, Unsupported

METRIC = "share of a cause"
BAND = (0.3, 3.3)  # of measured over predicted: as far apart as the two tables that were published
# what a line says, first match wins; a line of a source with a preset has the component that stands there
WORDS = (
    (r"hbm|\becc\b", "hbm"), (r"silent|numerics", "corruption"), (r"nic\b", "nic"),
    (r"switch|cable|link flap", "optics"), (r"\bgpu\b|nvlink|pcie|xid", "chip"), (r"\bssd\b|drive", "drive"),
    (r"power supply|psu", "psu"), (r"cooling|pump|fan\b", "pump"),
    (r"host|reboot|\bcpu\b|memory|chassis|board|unreachable|machine", "host"),
    (r"software|kernel|dependency", "software"), (r"timeout|unknown", "unknown"),
)  # fmt: skip
OF_USERS = re.compile(r"acme|philly|seren|kalos|helios", re.IGNORECASE)


def predict_causes(rows: Sequence[Row], catalog: Catalog) -> Iterator[Outcome]:
    """One table: the rows of a component together, the others counted with it."""
    known: dict[str, list[Row]] = {}
    whole = 0.0
    for row in rows:
        try:
            whole += row.positive("count")
            known.setdefault(component_of(row, catalog), []).append(row)
        except RowError as problem:
            yield Unsupported(str(problem), row.where)
    for component, members in known.items():
        yield from _predicted(component, members, whole, catalog)


def component_of(row: Row, catalog: Catalog) -> str:
    """The component that a line of a table blames."""
    if OF_USERS.search(row.text("cluster")):
        raise RowError("causes of many users' jobs, most of them their own programs")
    words = row.text("cause_or_metric")
    for preset in own_presets(row, catalog):
        for cause in preset.causes:
            if cause.name == words:
                return cause.component
    for pattern, component in WORDS:
        if re.search(pattern, words, re.IGNORECASE):
            return component
    raise RowError("a cause that no component is to blame for")


def _predicted(component: str, members: Sequence[Row], whole: float, catalog: Catalog) -> Iterator[Outcome]:
    first = members[0]
    expected = shares(other_fleets(first, catalog)).get(component, 0.0)
    if not expected:
        yield from (Unsupported("a component that no other source counted", row.where) for row in members)
        return
    lines = f"{component}, {len(members)} lines" if len(members) > 1 else component
    yield unless_fitted(
        first,
        Prediction(
            source=first.text("primary_source").partition(" (")[0],
            hardware=first.text("accelerator"),
            model=first.text("cluster"),
            label=f"{first.text('cluster')}: {lines}",
            where=first.where,
            measured=sum(row.positive("count") for row in members) / whole,
            predicted=expected,
            low=expected * BAND[0],
            high=expected * BAND[1],
            unit="fraction",
            metric=METRIC,
            basis="other fleets",
        ),
    )
    yield from (Unsupported("counted with another line of its component", row.where) for row in members[1:])
