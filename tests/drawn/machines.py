"""Machines that nobody sells: a chip of drawn facts, written as a person would add one to the catalogue."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import msgspec

import datahall as dh

TEXT = """
[source.lab]
title = "drawn at random"
date = "2026-11"
kind = "estimate"

[chip.lab]
source = "lab"
title = "Lab chip"
vendor = "lab"
family = "{0.family}"
sms = {0.num_sms}
clock = "1.7 GHz"
memory = "{0.memory_gb:.3f} GB"
memory_bandwidth = "{0.memory_gb_per_s:.3f} GB/s"
scale_up = "nvlink-4"
scale_up_bandwidth = "{0.scale_up_gb_per_s:.3f} GB/s"
scale_up_domain = {0.domain}
host = "pcie-5-x16"
host_bandwidth = "63 GB/s"
nic_bandwidth = "{0.nic_gbit_per_s:.3f} Gb/s"
power_limit = "700 W"

[chip.lab.peak]
bf16 = "{0.peak_tflop_per_s:.3f} TFLOP/s"
fp16 = "{0.peak_tflop_per_s:.3f} TFLOP/s"
fp8 = "{1:.3f} TFLOP/s"
"""
# what there can be more of
RESOURCES = ("peak_tflop_per_s", "memory_gb_per_s", "memory_gb", "scale_up_gb_per_s", "nic_gbit_per_s")
MODELS = ("llama-3.1-8b", "mixtral-8x7b", "llama-3.1-70b", "qwen3-30b-a3b", "gemma-2-9b")


class Machine(msgspec.Struct, frozen=True):
    """The facts of a chip, and what is asked of so many of them."""

    family: str
    num_sms: int
    memory_gb: float
    memory_gb_per_s: float
    scale_up_gb_per_s: float
    domain: int
    nic_gbit_per_s: float
    peak_tflop_per_s: float
    model: str
    num_chips: int
    rate_per_s: float

    def with_more(self, resource: str, ratio: float) -> Machine:
        """The same with so many times of one resource."""
        return msgspec.structs.replace(self, **{resource: getattr(self, resource) * ratio})


def draw(seed: int) -> Machine:
    """A machine between the smallest and the largest that one can buy, joined as no two are."""
    dice = random.Random(seed)
    domain = dice.choice((4, 8, 16, 72))
    return Machine(
        family=dice.choice(("ampere", "hopper", "blackwell", "cdna3")),
        num_sms=dice.choice((80, 108, 132, 148, 304)),
        memory_gb=dice.uniform(32, 288),
        memory_gb_per_s=dice.uniform(1000, 8000),
        scale_up_gb_per_s=dice.uniform(50, 900),
        domain=domain,
        nic_gbit_per_s=dice.choice((100, 200, 400, 800)),
        peak_tflop_per_s=dice.uniform(100, 2500),
        model=dice.choice(MODELS),
        num_chips=domain * dice.choice((1, 2, 4, 8)),
        rate_per_s=dice.choice((0.5, 3, 20, 100)),
    )


LARGE_MODELS = ("llama-3.1-70b", "llama-3.1-405b", "mixtral-8x22b", "gpt-3-175b", "qwen2.5-72b")


def draw_for_pipelines(seed: int) -> Machine:
    """A drawn machine of small domains and chips, narrow networks and a large model: what is cut into stages."""
    dice = random.Random(seed)
    model, domain = dice.choice(LARGE_MODELS), dice.choice((4, 8))
    return msgspec.structs.replace(
        draw(seed),
        model=model,
        domain=domain,
        num_chips=domain * dice.choice((16, 32)),
        memory_gb=dice.uniform(64, 96),
        nic_gbit_per_s=dice.choice((50, 100, 200)),
    )


def shelf(machine: Machine, folder: Path) -> dh.Catalog:
    """The catalogue with the chip of a machine in it, named lab."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lab.toml").write_text(TEXT.format(machine, 2 * machine.peak_tflop_per_s))
    return dh.Catalog([folder], user=False)


Shelf = Callable[[Machine], dh.Catalog]
