"""A step of training as somebody asks for it: options read, the layout checked, the step played."""

from __future__ import annotations

import msgspec

from datahall.answers.bounds import find_model, opened, whole
from datahall.answers.training.imbalance_option import read_imbalance
from datahall.answers.training.layout_option import named_layout
from datahall.catalog import Catalog
from datahall.cluster.cluster import cluster_of
from datahall.errors import ScenarioError, UnitError
from datahall.training.layout.layout import Layout
from datahall.training.pipeline.execution import Execution, simulate_step
from datahall.training.pipeline.straggler import Stragglers
from datahall.training.step.framework import framework as framework_of
from datahall.training.step.step import Job
from datahall.units import parse
from datahall.workload.precision import Precision

MOST_PP, MOST_VPP, MOST_MICRO = 512, 64, 100_000


def simulated(
    model: str,
    *,
    chips: int | str,
    chip: str,
    seq: int | str,
    batch: int | str,
    tp: int | str,
    pp: int | str,
    vpp: int | str,
    cp: int | str,
    ep: int | str,
    dp: int | str | None,
    zero: int | str,
    micro_batch: int | str,
    schedule: str,
    recompute: str,
    precision: str,
    framework: str,
    domain: int | str,
    nic: float | str,
    slow_hosts: float | str,
    slow_by: float | str,
    jitter: float | str,
    seed: int,
    etp: int | str | None = None,
    shard: int | str | None = None,
    modules: str | None = None,
    context: str | None = None,
    split: str | None = None,
    offload: str | None = None,
    compress: str | None = None,
    imbalance: float | str | None = None,
    catalog: Catalog | None,
) -> Execution:
    """Play a step of what was asked; without `dp` the chips left over are replicas."""
    shelf = opened(catalog)
    num_chips = whole("chips", chips)
    whole("pp", pp, at_most=MOST_PP)
    whole("vpp", vpp, at_most=MOST_VPP)
    layout = named_layout(
        Layout(),
        {
            "tp": tp, "pp": pp, "vpp": vpp, "cp": cp, "ep": ep, "etp": etp, "zero": zero, "shard": shard,
            "micro_batch": micro_batch,
        },
        {
            "recompute": recompute, "modules": modules, "context": context, "split": split, "offload": offload,
            "compression": compress,
        },
    )  # fmt: skip
    replicas = max(1, num_chips // layout.num_chips) if dp is None else whole("dp", dp)
    layout = msgspec.structs.replace(layout, dp=replicas)
    job = Job(
        model=find_model(model, shelf),
        seq=whole("seq", seq),
        global_batch=whole("batch", batch),
        precision=Precision.named(precision),
        imbalance=read_imbalance(imbalance),
    )
    layout.check(job.model, num_chips, job.global_batch)
    num_micro = job.global_batch // (layout.dp * layout.micro_batch)
    if num_micro > MOST_MICRO:
        raise ScenarioError(
            f"{num_micro:,} micro-batches in a step are more than {MOST_MICRO:,}",
            hint="a larger --micro-batch or --dp",
        )
    return simulate_step(
        job,
        cluster_of(
            shelf.chip(chip),
            num_chips,
            num_domain=whole("domain", domain, at_least=0),
            nic_bytes_per_s=parse(nic, "bytes_per_s"),
            servers=shelf.servers(),
        ),
        layout,
        framework_of(framework),
        order=schedule,
        stragglers=Stragglers(
            slow_hosts_fraction=_share("slow-hosts", slow_hosts),
            slow_by_fraction=_share("slow-by", slow_by),
            jitter_fraction=_share("jitter", jitter),
        ),
        seed=seed,
    )


def _share(name: str, value: float | str) -> float:
    try:
        return parse(value, "fraction")
    except UnitError as error:
        raise ScenarioError(f"--{name}: {error.message}", hint=f'a share, e.g. --{name} "0.5 %"') from error
