"""RTX 4090 under vLLM: the L40S's constants on the same die, and one share from real requests.

Both cards carry an AD102 at the same clock.  The RTX 4090 accumulates in FP32 at half rate and has 450 W instead of 350 W,
so a share of the peak says nothing about it: in FLOP/s, what a multiprocessor of the L40S reaches, and what its power limit
allows per watt, lie above the pipes of the RTX 4090, which then bind (`on_this_card`).  What feeds the pipes is the same.

The RTX 4090 reaches a larger share of its bandwidth than the L40S; inline error correction on the L40S is the likely cause,
not a checked one.  The share is found on the requests that drain at the end of LLMServingSim's vLLM 0.19 run (33 of 300): the last one took its steps while the others
left, and the steps that the model predicts must add up to its time.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pandas as pd

from datahall.catalog import load
from datahall.catalog.entries.chip import Chip
from datahall.silicon.calibration import KIN_HIGH, KIN_LOW, Calibration, Constants, constant_sets
from datahall.silicon.kernel import kernel_times
from datahall.workload.forward import forward_pass

# between steps of few sequences: the drain of the RTX PRO 6000's run, with 13 sequences, less its measured layers
STEP_OVERHEAD_S = 3.7e-4
MOST = 0.97


def drain(kernels: Path, hardware: str) -> tuple[pd.DataFrame, float, float, float]:
    """Llama-3.1-8B's requests, and the last one's first and last token and number of steps."""
    rows = pd.read_csv(kernels / "llmservingsim_vllm019_requests.csv")
    rows = rows[(rows.hardware == hardware) & rows.model.str.contains("Llama-3.1-8B")].reset_index(drop=True)
    last = rows.loc[rows.first_token_s.idxmax()]
    return rows, last.first_token_s, last.last_token_s, last.output_toks - 1.0


def steps(kernels: Path, hardware: str, chip_name: str, constants: Constants) -> tuple[float, float]:
    """Predicted and measured number of steps while the last request ran."""
    rows, start, end, taken = drain(kernels, hardware)
    times = np.linspace(start, end, 120)
    begin, finish = rows.first_token_s.to_numpy()[None], rows.last_token_s.to_numpy()[None]
    running = (begin <= times[:, None]) & (finish > times[:, None])
    done = (times[:, None] - begin) / (finish - begin)
    tokens = np.where(
        running, rows.input_toks.to_numpy()[None] + done * rows.output_toks.to_numpy()[None], 0.0
    ).sum(1)
    batch = np.maximum(running.sum(1), 1).astype(float)
    chip, calibration = load().chip(chip_name), Calibration(constants, "measured", True)
    passed = forward_pass(load().model("llama-3.1-8b"), batch=batch, query=1.0, past=tokens / batch)
    kernels_of_step = kernel_times(
        chip, tuple(passed), calibration, sustained=True, block_scaled=False, warm=False
    )
    step_s = STEP_OVERHEAD_S + sum(one.total_s for one in kernels_of_step)
    return float(np.trapezoid(1.0 / step_s, times)), taken


def on_this_card(kin: Constants, chip: Chip, relative: Chip) -> Constants:
    """The relative's rates in FLOP/s, per multiprocessor and per watt, as shares of this card's peak; at most all of it."""
    per_sm = relative.peak("bf16") / relative.num_sms / (chip.peak("bf16") / chip.num_sms)
    per_watt = relative.peak("bf16") / relative.power_limit_w / (chip.peak("bf16") / chip.power_limit_w)

    def share(group: object, **factors: float) -> object:
        return msgspec.structs.replace(
            group, **{name: min(1.0, getattr(group, name) * factor) for name, factor in factors.items()}
        )

    both = {"tensor_efficiency": per_sm, "power_efficiency": per_watt}
    power = {"power_efficiency": per_watt}
    return msgspec.structs.replace(
        kin,
        sustained=1.0,  # the pipes bind, not the power limit
        bands={kind: (low * KIN_LOW, high * KIN_HIGH) for kind, (low, high) in kin.bands.items()},
        gemm=share(kin.gemm, **both),
        paths={name: share(one, **both) for name, one in kin.paths.items()},
        prefill=share(kin.prefill, **both),
        grouped=share(kin.grouped, **power),
        batched=share(kin.batched, **power),
        experts={name: share(one, **power) for name, one in kin.experts.items()},
        latent_prefill=share(kin.latent_prefill, **both),
    )


def faster_memory(constants: Constants, factor: float) -> Constants:
    """The same with a larger share of the bandwidth."""

    def lifted(group: object, *names: str) -> object:
        return msgspec.structs.replace(
            group, **{name: min(MOST, getattr(group, name) * factor) for name in names}
        )

    return msgspec.structs.replace(
        constants,
        gemm=lifted(constants.gemm, "memory_efficiency"),
        decode=lifted(constants.decode, "memory_efficiency"),
        experts={
            name: lifted(one, "memory_efficiency", "small_memory_efficiency")
            for name, one in constants.experts.items()
        },
    )


def rtx_4090(kernels: Path) -> dict:
    """The set as it stands in constants.json."""
    chip = load().chip("rtx-4090")
    kin = on_this_card(constant_sets()["l40s-vllm"], chip, load().chip("l40s"))
    best, factor = np.inf, 1.0
    for tried in np.arange(1.0, 1.3, 0.01):
        predicted, taken = steps(kernels, "RTX4090", chip.name, faster_memory(kin, float(tried)))
        if abs(predicted / taken - 1.0) < best:
            best, factor = abs(predicted / taken - 1.0), float(tried)
    print(f"  rtx-4090: memory shares of the L40S times {factor:.2f}, steps within {best:.1%}")
    found = msgspec.to_builtins(faster_memory(kin, factor))
    return found | {
        "name": "rtx-4090-vllm",
        "chip": chip.name,
        "reference_sm_flop_per_s": float(f"{chip.peak('bf16') / chip.num_sms:.4g}"),
        "fitted_on": "the L40S set, its rates in FLOP/s; the share of the bandwidth on 33 of 300 requests of a vLLM 0.19 run on this card, at 0.37 ms between steps",
        "source": {"title": "LLMServingSim vLLM 0.19 requests (MIT)", "date": "2026-11", "kind": "measured"},
    }
