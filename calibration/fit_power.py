"""Fit what chips and servers draw and write src/datahall/power/data/constants.json.

    python calibration/fit_power.py POWER_CSV TRAINING_POWER_CSV [--check]

Rows of both files are copied to src/datahall/validation/data/power/ as far as a load is stated in them, every fourth of
a source marked: the shipped constants are fitted on these.  The script also says how far the model is off where it is
fitted on all rows but those of one model, one system or one submitter, and scored on these; with --check it only
says that.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from written import write_sets

from datahall.breakdown import Source
from datahall.catalog.entries.chip import Chip
from datahall.errors import DatahallError
from datahall.power import chip as chip_power
from datahall.power.activity import WIDE_BYTES, Activity
from datahall.power.constants import ANY, ChipConstants, Constants, ServerConstants
from datahall.power.server import MEASURED_CHIPS, NIC_W
from datahall.validation.measurement import Row, RowError, read_rows
from datahall.validation.power import nodes, serving, walls

ROOT = Path(__file__).parent.parent / "src/datahall"
OUT = ROOT / "power/data/constants.json"
SHIPPED = ROOT / "validation/data/power"
Floats = NDArray[np.float64]

FAMILIES = ("hopper", "blackwell")
PER_FAMILY = 2  # the last constants: what decodes do with caches, and widening of weights
START = np.array([0.2, 6.0, 1.2, 1.0, 1.0])  # ratios of the headroom, then 100 pJ
PICO = 1e-10
# Times to train of the adapters' benchmark on several nodes, against what a step takes, leave half a minute to what is
# no step (85 submissions of v4.0 to v5.1, the training ledger's); so much is known of it before power is looked at.
START_S, START_WEIGHT = 30.0, 0.1
USUAL_EFFICIENCY = 0.97  # of titanium supplies, where no run was read on both sides
LOSS = 0.1  # relative error from which on a row counts less


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of chips that serve: what they did, and what was measured."""

    rows: list[Row]
    models: Floats
    families: Floats
    use: Floats  # watts of each part per unit of its constant
    link_w: Floats
    idle_w: Floats
    headroom_w: Floats
    measured_w: Floats
    measured_j: Floats
    alone: Floats  # the same of `use`, at our own rate
    alone_link_w: Floats
    token_s: Floats  # chips over our own rate


def table_of(rows: Sequence[Row]) -> Table:
    """Each row that can be expressed."""
    found = []
    for row in rows:
        try:
            point = serving.understood(row)
        except (RowError, DatahallError):
            continue
        chip = point.replica.chip
        found.append(
            (
                row, point.replica.model.name, chip.family, *used(chip, point.activity),
                chip_power.idle_power_w(chip), chip.power_limit_w - chip_power.idle_power_w(chip),
                row.positive("power_w_per_accel"), row.positive("energy_j_per_output_token"),
                *used(chip, point.work.activity), point.replica.num_chips / point.tokens_per_s,
            )
        )  # fmt: skip
    columns = [list(column) for column in zip(*found, strict=True)]
    return Table(
        rows=columns[0], models=np.array(columns[1]), families=np.array(columns[2]), use=np.array(columns[3]),
        link_w=np.array(columns[4]), idle_w=np.array(columns[5]), headroom_w=np.array(columns[6]),
        measured_w=np.array(columns[7]), measured_j=np.array(columns[8]), alone=np.array(columns[9]),
        alone_link_w=np.array(columns[10]), token_s=np.array(columns[11]),
    )  # fmt: skip


def used(chip: Chip, activity: Activity) -> tuple[list[float], float]:
    """Watts per unit of busy, tensor, memory, cache and scaled constants, and the watts of links."""
    headroom_w = chip.power_limit_w - chip_power.idle_power_w(chip)
    rate = PICO * chip.memory_bytes_per_s
    links = chip.scale_up_bytes_per_s if np.isfinite(chip.scale_up_bytes_per_s) else 0.0
    parts = [
        activity.busy_fraction * headroom_w, activity.tensor_fraction * headroom_w, activity.memory_fraction * rate,
        activity.cache_fraction * rate, activity.scaled_fraction * rate / WIDE_BYTES,
    ]  # fmt: skip
    return parts, activity.link_fraction * chip_power.LINK_J_PER_BYTE * links


def predicted(table: Table, found: Floats, *, alone: bool = False) -> Floats:
    """Watts of each row: three constants that all chips share, then two for each family."""
    shared, own = found[:-PER_FAMILY], found[-PER_FAMILY:]
    if len(found) > START.size:
        own = found[START.size - PER_FAMILY :].reshape(-1, PER_FAMILY)
        own = own[[FAMILIES.index(one) for one in table.families]]
        shared = found[: START.size - PER_FAMILY]
    use, link_w = (table.alone, table.alone_link_w) if alone else (table.use, table.link_w)
    wanted = use[:, :-PER_FAMILY] @ shared + (use[:, -PER_FAMILY:] * own).sum(axis=1) + link_w
    return table.idle_w + wanted / np.sqrt(1.0 + (wanted / table.headroom_w) ** 2)


def fit_chips(table: Table, on: NDArray[np.bool_], *, by_family: bool = True) -> Floats:
    """Constants from the rows of a mask."""
    own = np.tile(START[-PER_FAMILY:], len(FAMILIES) if by_family else 1)
    start = np.concatenate([START[:-PER_FAMILY], own])

    def misses(found: Floats) -> Floats:
        return np.asarray(predicted(table, found) / table.measured_w - 1.0)[on]

    return np.asarray(least_squares(misses, start, bounds=(0.0, np.inf), loss="soft_l1", f_scale=LOSS).x)


def left_out(table: Table) -> Floats:
    """Relative errors of each row by constants fitted on the other models; of power, of it alone, and of energy."""
    errors = np.zeros((3, len(table.rows)))
    for model in np.unique(table.models):
        mine = table.models == model
        found = fit_chips(table, ~mine)
        alone_w = predicted(table, found, alone=True)
        each = (
            predicted(table, found) / table.measured_w,
            alone_w / table.measured_w,
            alone_w * table.token_s / table.measured_j,
        )
        for place, ratio in enumerate(each):
            errors[place, mine] = ratio[mine] - 1.0
    return errors


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A reading of a server or node: what its chips draw at work and idle, and what it drew."""

    row: Row
    system: str
    submitter: str
    kind: str
    num_chips: int
    chip_w: float
    idle_w: float
    duration_s: float
    at_the_wall: bool
    measured_w: float
    weight: float = 1.0


def servers_of(points: Sequence[Row], runs: Sequence[Row]) -> list[Server]:
    """Nodes that trained and servers that were idle or served, as far as they can be expressed."""
    found = []
    for row in runs:
        try:
            node = nodes.understood(row)
        except (RowError, DatahallError):
            continue
        found.append(
            Server(
                row=row, system=row.text("system"), submitter=row.text("repo_path").split(":")[-1].split("/")[0][:3],
                kind="node", num_chips=node.num_chips, chip_w=nodes.mean_chip_w(node, 0.0),
                idle_w=chip_power.idle_power_w(node.chip), duration_s=node.duration_s, at_the_wall=node.at_the_wall,
                measured_w=row.positive("mean_node_W"),
            )
        )  # fmt: skip
    for row in points:
        if not row.text("scope").startswith("server wall (PTDaemon"):
            continue
        for one in walls.predict_wall(row):
            if isinstance(one, walls.Unsupported):
                continue
            chip = walls.chip_of(row.text("accelerator"))
            idle_w = chip_power.idle_power_w(chip)
            drawn_w = idle_w if one.metric == walls.IDLE_POWER else walls.chip_w(row, chip)
            words = row.text("system").split()
            found.append(
                Server(
                    row=row, system=words[-1], submitter=words[0][:3], kind=one.metric, num_chips=8, chip_w=drawn_w,
                    idle_w=idle_w, duration_s=np.inf, at_the_wall=True, measured_w=one.measured,
                )
            )  # fmt: skip
    return found


def server_w(one: Server, found: Floats, efficiency: float) -> float:
    """What the model says of a reading."""
    host_w, load, start_s = found
    waits = min(1.0, start_s / one.duration_s)
    chip_w = waits * one.idle_w + (1.0 - waits) * one.chip_w
    drawn_w = one.num_chips * (chip_w + host_w / MEASURED_CHIPS + NIC_W + load * (chip_w - one.idle_w))
    return drawn_w / efficiency if one.at_the_wall else drawn_w


def efficiency_of(servers: Sequence[Server]) -> float:
    """DC over AC of jobs that were read on both sides of the supplies."""
    sides: dict[str, dict[bool, list[float]]] = {}
    for one in servers:
        if one.kind == "node" and one.row.text("measurement_point")[:2] in ("AC", "DC"):
            job = f"{one.system} {one.row.text('benchmark')}"
            sides.setdefault(job, {}).setdefault(one.at_the_wall, []).append(one.measured_w)
    both = [np.median(found[False]) / np.median(found[True]) for found in sides.values() if len(found) == 2]
    return float(np.median(both)) if both else USUAL_EFFICIENCY


def fit_servers(servers: Sequence[Server], efficiency: float) -> Floats:
    """Constants of servers; each system counts as much as another, however many runs it made."""
    counts: dict[tuple[str, str], int] = {}
    for one in servers:
        counts[one.system, one.kind] = counts.get((one.system, one.kind), 0) + 1
    weights = np.array([1.0 / np.sqrt(counts[one.system, one.kind]) for one in servers])

    def misses(found: Floats) -> Floats:
        ratios = np.array([server_w(one, found, efficiency) / one.measured_w for one in servers])
        return np.append((ratios - 1.0) * weights, START_WEIGHT * (found[2] / START_S - 1.0))

    start = np.array([1000.0, 0.1, START_S])
    return np.asarray(
        least_squares(
            misses, start, bounds=([0.0, 0.0, 0.0], np.inf), loss="soft_l1", f_scale=LOSS, x_scale=start
        ).x
    )


def servers_left_out(
    servers: Sequence[Server], of: Callable[[Server], str], *, only_nodes: bool = True
) -> dict[str, Floats]:
    """Relative errors by constants fitted without those of the same system or submitter."""
    errors: dict[str, Floats] = {}
    scored = [one for one in servers if one.kind == "node" or not only_nodes]
    for name in sorted({of(one) for one in scored}):
        others = [one for one in servers if of(one) != name]
        efficiency = efficiency_of(others)
        found = fit_servers(others, efficiency)
        mine = [one for one in scored if of(one) == name]
        errors[name] = np.array([server_w(one, found, efficiency) / one.measured_w - 1.0 for one in mine])
    return errors


def system_ratios(servers: Sequence[Server]) -> Floats:
    """Measured over predicted without a submitter's readings, one of each system and kind of reading."""
    ratios: dict[tuple[str, str], list[float]] = {}
    errors = servers_left_out(servers, lambda one: one.submitter, only_nodes=False)
    for name, each in errors.items():
        mine = [one for one in servers if one.submitter == name]
        for one, error in zip(mine, each, strict=True):
            ratios.setdefault((one.system, one.kind), []).append(1.0 / (1.0 + error))
    return np.array([np.median(found) for found in ratios.values()])


def band(ratios: Floats) -> tuple[float, float]:
    """P10 and P90 of measured over predicted."""
    low, high = np.quantile(ratios, (0.1, 0.9))
    return round(float(min(low, 0.99)), 3), round(float(max(high, 1.01)), 3)


def say(title: str, errors: Floats) -> None:
    size = np.abs(errors) * 100
    print(f"  {title:40s} {size.size:4d} rows, mean {size.mean():5.1f} %, median {np.median(size):5.1f} %")


def ship(
    path: Path, rows: Sequence[Row], keep: Callable[[Row], bool], groups: Callable[[Row], str]
) -> list[Row]:
    """Write the rows that are kept, every fourth of a group marked as fitted on, but none of phases; the marked rows."""
    kept = [row for row in rows if keep(row)]
    seen: dict[str, int] = {}
    lines, marked = [], []
    for row in kept:
        place = seen.get(groups(row), 0)
        seen[groups(row)] = place + 1
        mark = "1" if place % 4 == 3 and not row.text("scope").startswith("GPU (NVML") else ""
        lines.append({**row.cells, "fitted": mark})
        if mark:
            marked.append(row)
    columns = [name for name in lines[0] if any(line[name] for line in lines)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    return marked


def main(points_csv: Path, runs_csv: Path, *, check: bool) -> None:
    points, runs = read_rows(points_csv)[1], read_rows(runs_csv)[1]
    table, servers = table_of(points), servers_of(points, runs)
    errors = left_out(table)
    print("leaving each model out:")
    say("power, rate as stated", errors[0])
    for family in FAMILIES:
        say(f"  {family}", errors[0][table.families == family])
    for model in np.unique(table.models):
        say(f"    {model}", errors[0][table.models == model])
    say("power, rate predicted", errors[1])
    say("energy per token, rate predicted", errors[2])
    for title, of in (("system", lambda one: one.system), ("submitter", lambda one: one.submitter)):
        print(f"leaving each {title} out:")
        apart = servers_left_out(servers, of)
        say("node power", np.concatenate(list(apart.values())))
        for name, each in apart.items():
            say(f"  {name}", each)
    if check:
        return
    fitted_points = ship(
        SHIPPED / "points.csv", points,
        lambda row: row.text("scope").startswith(("GPU sum", "server wall (PTD", "GPU (NVML")),
        lambda row: row.text("source"),
    )  # fmt: skip
    fitted_runs = ship(SHIPPED / "training_nodes.csv", runs, lambda _: True, lambda row: row.text("source"))
    write(table, servers, {row.where for row in fitted_points}, {row.where for row in fitted_runs})


def write(table: Table, servers: Sequence[Server], points: set[str], runs: set[str]) -> None:
    """Fit on the marked rows, and take bands from them, each left out in turn by model."""
    on = np.array([row.where in points for row in table.rows])
    found, shared = fit_chips(table, on), fit_chips(table, on, by_family=False)
    mine = [one for one in servers if one.row.where in (runs if one.kind == "node" else points)]
    efficiency = efficiency_of(mine)
    server = fit_servers(mine, efficiency)
    part = msgspec.structs.replace(table, **{
        name: np.array(getattr(table, name))[on] for name in Table.__struct_fields__ if name != "rows"
    }, rows=[row for row, one in zip(table.rows, on, strict=True) if one])  # fmt: skip
    apart = left_out(part)
    chip_band = band(1.0 / (1.0 + apart[0]))
    node_band = band(system_ratios(mine))
    sets = {ANY: chip_set(shared)}
    for place, family in enumerate(FAMILIES):
        own = found[START.size - PER_FAMILY :].reshape(-1, PER_FAMILY)[place]
        sets[family] = chip_set(np.concatenate([found[: START.size - PER_FAMILY], own]))
    made = Constants(
        source=Source("ML.ENERGY benchmark v3, ml-energy/leaderboard", "2026-02-16", "measured"),
        fitted_on=f"{int(on.sum())} points of the ML.ENERGY benchmark on H100 and B200",
        chips=("h100-sxm", "b200-sxm"),
        families=sets,
        server=ServerConstants(
            host_w=round(float(server[0]), 1),
            load_fraction=round(float(server[1]), 4),
            supply_efficiency=round(efficiency, 4),
            start_s=round(float(server[2]), 1),
        ),
        server_source=Source("MLPerf Training v4.0 to v5.0 and Inference v4.0 to v5.1, power logs", "2025-09", "measured"),
        server_fitted_on=f"{len(mine)} readings of MLPerf servers with eight chips",
        bands={
            serving.UNAIDED: band(1.0 / (1.0 + apart[1])),
            serving.ENERGY: band(1.0 / (1.0 + apart[2])),
            **{f"chip, {basis}": wider(chip_band, by) for basis, by in WIDER.items()},
            **{f"server, {basis}": wider(node_band, by) for basis, by in WIDER.items()},
        },
    )  # fmt: skip
    write_sets(OUT, msgspec.to_builtins(made))
    print("written:", made.families, made.server, made.bands, sep="\n  ")


# How much wider a band is, on either side, where the chip itself was not measured.
WIDER = {"measured": 1.0, "family-calibrated": 1.5, "datasheet only": 2.0}


def wider(found: tuple[float, float], times: float) -> tuple[float, float]:
    low, high = found
    return round(max(0.1, 1.0 - times * (1.0 - low)), 3), round(1.0 + times * (high - 1.0), 3)


def chip_set(found: Floats) -> ChipConstants:
    busy, tensor, memory, cache, scaled = (float(one) for one in found)
    return ChipConstants(
        busy_headroom_ratio=round(busy, 4),
        tensor_headroom_ratio=round(tensor, 3),
        memory_j_per_byte=round(memory * PICO, 14),
        cache_j_per_byte=round(cache * PICO, 14),
        scaled_j_per_value=round(scaled * PICO, 14),
    )


if __name__ == "__main__":
    paths = [Path(word) for word in sys.argv[1:] if not word.startswith("--")]
    main(paths[0], paths[1], check="--check" in sys.argv)
