"""Fit the all-reduce of serving engines and write src/datahall/fabric/collectives/data/custom.json.

    python calibration/fit_custom.py KERNELS

KERNELS holds aic_comm_extract.csv (see docs/calibration.md).  A quarter of the rows of each chip and engine is fitted on.
Rows of vLLM and SGLang that were launched from the host are left out: serving replays graphs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
from kernel_tables import SYSTEMS
from search import errors, fit
from written import write_sets

from datahall.breakdown import Source
from datahall.fabric.collectives.engine_all_reduce import CustomConstants, custom_time

OUT = Path(__file__).parent.parent / "src/datahall/fabric/collectives/data/custom.json"
LIBRARIES = ("vllm", "trtllm", "sglang")  # as its tables call them
SOURCE = Source("AIConfigurator kernel tables 0.12.0 (NVIDIA, Apache-2.0)", "2026-11", "measured")
START = {
    "base_s": 5e-6,
    "hop_s": 1e-7,
    "one_shot_bytes_per_s": 0.55,
    "two_shot_s": 8e-6,
    "two_shot_bytes_per_s": 0.75,
    "library_s": 2.5e-5,
    "bus2": 0.70,
    "bus4": 0.75,
    "bus8": 0.80,
}


def constants(flat: dict[str, float], **names: object) -> CustomConstants:
    values = {key: value for key, value in flat.items() if not key.startswith("bus")}
    return CustomConstants(
        **values,
        bus_bytes_per_s=(flat["bus2"], flat["bus4"], flat["bus8"]),
        **{"fitted_on": "", "source": SOURCE, "band": (1, 1), "most_ranks": 8} | names,
    )


def predict(rows: pd.DataFrame, flat: dict[str, float]) -> np.ndarray:
    one = constants(flat, chip="", engine="")
    out = np.empty(len(rows))
    for ranks in rows.num_gpus.unique():
        at = (rows.num_gpus == ranks).to_numpy()
        out[at] = custom_time(rows.size_bytes.to_numpy(float)[at], int(ranks), one)
    return out * 1e6


def main(kernels: Path) -> None:
    from datahall.catalog import load

    every = pd.read_csv(kernels / "aic_comm_extract.csv")
    every = every[every.op_name.str.startswith("all_reduce") & ~every.op_name.str.contains("eager")]
    sets = {}
    for system, chip_name in SYSTEMS.items():
        link = load().chip(chip_name).scale_up_bytes_per_s
        for engine in LIBRARIES:
            rows = every[(every.system == system) & every.lib.str.startswith(engine) & (every.num_gpus <= 8)]
            if rows.empty:
                continue
            if engine != "trtllm":  # trays of four: past them vLLM and SGLang call the library
                rows = rows[rows.num_gpus <= (4 if chip_name.startswith("gb") else 8)]
            rows = rows.assign(size_bytes=rows.message_elements * 2.0, us=rows.latency_ms * 1e3)
            rows = rows.groupby(["num_gpus", "size_bytes"], as_index=False).us.min()
            held = np.arange(len(rows)) % 4 == 0
            start = {key: value * link if value > 0.1 else value for key, value in START.items()}
            part, rest = rows[held].reset_index(drop=True), rows[~held].reset_index(drop=True)
            found = fit(start, lambda c, o=part: predict(o, c), part.us.to_numpy(), pull=0.005)
            band = errors(f"{system} {engine} all-reduce", predict(rest, found), rest.us.to_numpy())
            short = {key: float(f"{value:.4g}") for key, value in found.items()}
            name = f"{chip_name}-{engine}"
            values = {key: value for key, value in short.items() if not key.startswith("bus")}
            sets[name] = {
                "chip": chip_name,
                "engine": engine,
                "fitted_on": f"a quarter of its {system} rows",
                "source": msgspec.structs.asdict(SOURCE),
                "most_ranks": int(rows.num_gpus.max()),
                **values,
                "bus_bytes_per_s": [short["bus2"], short["bus4"], short["bus8"]],
                "band": list(band),
            }
    write_sets(OUT, sets)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
