"""One small answer with a bit of everything."""

import pytest

from datahall.answer import (
    Answer,
    Axis,
    Column,
    LineChart,
    Mark,
    Point,
    Quantity,
    RooflineChart,
    Series,
    StackChart,
    Table,
)
from datahall.breakdown import Source, assumed, fact, fitted, given, product, quotient

SHEET = Source("A <vendor> datasheet & whitepaper", "2024-06")
BENCH = Source("Somebody's benchmark", "2025-01", "measured")


@pytest.fixture
def answer() -> Answer:
    efficiency = fitted("efficiency", 0.8, "fraction", "41 points", BENCH, basis="measured")
    bandwidth = product(
        "bandwidth", (fact("datasheet bandwidth", 6e12, "bytes_per_s", SHEET), efficiency), "bytes_per_s"
    )
    weights = product(
        "weights",
        (given("parameters", 8.03e9, "parameters"), assumed("bytes of one", 2.0, "bytes", "bf16 has two")),
        "bytes",
    )
    step = quotient("step", weights, bandwidth, "s").with_band(0.9, 1.2, "41 points")
    table = Table(
        title="chips",
        columns=(
            Column("chip"),
            Column("memory", "bytes"),
            Column("value"),
            Column("source", "citation"),
            Column("note", aside=True),
        ),
        rows=(
            ("one", 80e9, Quantity(52428800.0, "bytes"), 1, "a remark | with a bar"),
            ("two", None, Quantity(5.5e12, "bytes_per_s", 5.5e12, 1e13), 2, ""),
        ),
        marked=1,
        note="A note on the table.",
    )
    return Answer(
        kind="example",
        inputs={"chip": "one", "batch_sequences": 32, "eager": False, "level": None},
        headline="A step takes 3.35 ms on <one>.",
        binding="Memory binds.",
        results={"step_s": 3.346e-3, "level": "measured", "unknown_bytes": None},
        tables=(table,),
        figure=step,
        charts=(
            RooflineChart(
                title="roofline",
                roofs={"BF16 dense": 989e12},
                slopes={"HBM": 4.8e12, "L2": 5.5e12},
                points=(
                    Point("qkv", 31.6, 8e13, "memory", 0.2, "20 %"),
                    Point("head", 300.0, 6e14, "compute", 0.5),
                ),
            ),
            LineChart(
                title="cliff",
                x=Axis("size", "bytes", log=True),
                y=Axis("bandwidth", "bytes_per_s", log=True),
                series=(
                    Series("a", (1e6, 1e8, 1e10), (1e13, 5e12, 3e12)),
                    Series("b", (1e6, 1e10), (1e13, 4e12)),
                ),
                marks=(Mark("L2 full", 5e7),),
                points=(Point("yours", 2e9, 3e12),),
            ),
            StackChart(
                title="memory", unit="bytes", rows=("1 × one",), parts={"weights": (16e9,), "free": (50e9,)}
            ),
        ),
        notes=("an assumption",),
        sources=(SHEET, BENCH),
        next_commands=("datahall show chip one",),
    )
