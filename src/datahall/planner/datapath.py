"""The data path that a question describes: a model is trained on the fastest layout of the chips, as plans find it."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.catalog.entries.stored.dataset import Dataset
from datahall.catalog.entries.stored.storage import Storage
from datahall.counted import counted
from datahall.datapath.asked import Asked
from datahall.datapath.benchmark import LEAST_STEPS
from datahall.datapath.cold_start import loader_of
from datahall.datapath.demand import size_of, tokens_per_s
from datahall.datapath.pipeline import Pipeline, Store
from datahall.datapath.sections.text import TEXT
from datahall.errors import InfeasibleError, ScenarioError, UnsupportedError, option
from datahall.fabric.design.parts import usual_server
from datahall.planner.training.laid.job import laid_job
from datahall.reliability.job import RunningJob
from datahall.scenario.idle import does_nothing, is_changed
from datahall.scenario.scenario import Scenario, model_of, section_name
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.operations.datapath import DataPath
from datahall.scenario.sections.root import Root
from datahall.scenario.usual import USUAL_CHIP, USUAL_SEQ
from datahall.scenario.words import Format, Shuffle
from datahall.units import fmt

PAGE_CACHE = "page-cache"


def asked_of(scenario: Scenario) -> Asked:
    """Read a question; what cannot be, is refused with the input that is at fault."""
    inputs, fabric = scenario.one(DataPath), scenario.one(FabricDesign)
    catalog = scenario.catalog
    chip = catalog.chip(fabric.chip or USUAL_CHIP)
    is_text = not catalog.knows("dataset", inputs.workload)
    model = model_of(inputs.workload, catalog) if is_text else None
    dataset = catalog.dataset(TEXT if is_text else inputs.workload)
    tiers = [catalog.storage(name) for name in inputs.storage]
    _check_used(scenario, model, tiers)
    assert fabric.chips is not None  # the verb requires it
    training = None
    if model is not None and inputs.step_s is None and inputs.mfu_fraction is None:
        training = _fastest(_trained(scenario, inputs.workload))
    batch = inputs.batch or _usual_batch(dataset, model, training)
    format = inputs.stored_as or ("shards" if dataset.num_samples_per_file > 1 else "files")
    sample_bytes = inputs.sample_bytes or dataset.sample_bytes
    least_bytes = LEAST_STEPS * batch * fabric.chips * sample_bytes
    job = Pipeline(
        num_chips=fabric.chips,
        num_chips_per_host=inputs.chips_per_host or usual_server(catalog, chip).num_host_chips,
        step_s=inputs.step_s or _step_s(inputs, dataset, model, training, chip, batch),
        batch=batch,
        sample_bytes=sample_bytes,
        spread_bytes=dataset.spread_bytes * sample_bytes / dataset.sample_bytes,
        dataset_bytes=inputs.dataset_bytes or max(dataset.size_bytes, least_bytes),
        num_samples_per_file=dataset.num_samples_per_file,
        format=format,
        shuffle=inputs.shuffle or _usual_shuffle(format),
        columns_fraction=inputs.columns_fraction,
        num_readers=inputs.readers or dataset.num_readers,
        num_prefetch=inputs.prefetch_depth,
        prepare_s=inputs.prepare_s or 0.0,
        num_cores=inputs.cores,
        cache_bytes=inputs.cache_bytes,
        keeping=inputs.keeping,
        cache_stream_bytes_per_s=catalog.storage(PAGE_CACHE).stream_bytes_per_s,
        nic_bytes_per_s=inputs.host_nic_bytes_per_s,
    )
    memory_bytes = _memory_bytes(inputs, catalog, chip)
    _check(inputs, job, memory_bytes)
    size = inputs.checkpoint_bytes
    if size is None:
        size = size_of(_trained(scenario, inputs.workload)).total_bytes if model is not None else 0.0
    stores = tuple(
        Store(
            storage=storage,
            num_units=inputs.units,
            away_s=inputs.away_s if storage.is_shared else 0.0,
            checkpoint_bytes=size,
            interval_s=inputs.interval_s,
        )
        for storage in tiers
    )
    return Asked(
        inputs=inputs, chip=chip, dataset=dataset, model=model, training=training, job=job, stores=stores,
        checkpoint_bytes=size, promised_fraction=inputs.utilisation_fraction,
        host_memory_bytes=memory_bytes, num_replicas=inputs.replicas,
        loader=loader_of(
            catalog, chip, num_chips=job.num_chips_per_host, num_readers=job.num_readers,
            nic_bytes_per_s=job.nic_bytes_per_s,
        ),
    )  # fmt: skip


def _trained(scenario: Scenario, model: str) -> Scenario:
    """The same question as one about training that model."""
    root = msgspec.structs.replace(scenario.root, model=model)
    return msgspec.structs.replace(scenario, sections={**scenario.sections, section_name(Root): (root,)})


def _fastest(asked: Scenario) -> RunningJob:
    """The job that trains a model on the chips there are; where there is none, its speed has to be said."""
    try:
        return laid_job(asked)
    except (InfeasibleError, ScenarioError) as error:
        error.hint = f"other {option('chips')}, or say how fast they train: {option('mfu', '40%')}"
        raise


def _memory_bytes(inputs: DataPath, catalog: Catalog, chip: Chip) -> float:
    """Memory of a host: as it was said, or as the machine is sold that the chip stands in; 0 where nobody knows."""
    if inputs.host_memory_bytes is not None:
        return inputs.host_memory_bytes
    sold = usual_server(catalog, chip).memory_bytes_per_host
    return sold if isfinite(sold) else 0.0


def _usual_batch(dataset: Dataset, model: Model | None, training: RunningJob | None) -> int:
    """Samples of a chip and step: of a model its share of the tokens of a step, or a sequence."""
    if training is not None:
        return max(1, round(training.batch_tokens / training.num_chips))
    return USUAL_SEQ if model is not None else dataset.batch


def _step_s(
    inputs: DataPath,
    dataset: Dataset,
    model: Model | None,
    training: RunningJob | None,
    chip: Chip,
    batch: int,
) -> float:
    if training is not None:
        return batch * training.num_chips / training.tokens_per_s
    if model is not None:
        assert inputs.mfu_fraction is not None  # it is what was said in place of a step
        return batch / tokens_per_s(model, chip, inputs.mfu_fraction)
    if chip.name not in dataset.step_s:
        known = ", ".join(dataset.step_s) or "no chip"
        raise UnsupportedError(
            f"nobody published how long {chip.name} works on a batch of {dataset.name}",
            hint=f"known of {known}; or say it: {option('step', '200ms')}",
        )
    usual: float = dataset.step_s[chip.name] * batch / dataset.batch
    return usual


def _usual_shuffle(format: Format) -> Shuffle:
    return "random" if format == "files" else "buffer"


def _check_used(scenario: Scenario, model: Model | None, tiers: Sequence[Storage]) -> None:
    """Refuse inputs of a model where a data set is read, of checkpoints or a way to storage that there are not."""
    asked, idle = scenario.one(DataPath), dict[str, tuple[str, str]]()
    if model is None:
        why = f"{asked.workload} is a data set", "a model that is trained on text"
        idle |= {"mfu": why, "replicas": why}
    if not asked.checkpoint_bytes and (model is None or asked.checkpoint_bytes is not None):
        idle["checkpoint_every"] = "there are no checkpoints", f"add {option('checkpoint', '1TB')}"
    if not any(one.is_shared for one in tiers):
        why = "all storage here is in the hosts", "storage that hosts share, e.g. parallel or object"
        idle |= {"away": why, "host_nic": why}
    for name, (reason, instead) in idle.items():
        if is_changed(scenario, name):
            hint = f"leave it out, or {instead}"
            raise ScenarioError(does_nothing(name, reason), field=name, hint=hint)


def _check(inputs: DataPath, job: Pipeline, memory_bytes: float) -> None:
    step_bytes = job.num_chips * job.batch * job.sample_bytes
    if job.dataset_bytes < step_bytes:
        raise ScenarioError(
            f"a data set of {fmt(job.dataset_bytes, 'bytes')} is less than one step of "
            f"{counted(job.num_chips, 'chip')} reads ({fmt(step_bytes, 'bytes')})",
            field="dataset",
            hint=f"more data, fewer chips, or a smaller {option('batch')}",
        )
    if job.cache_bytes and not memory_bytes:
        raise UnsupportedError(
            "nobody published how much memory a host of these chips has",
            field="host_memory",
            hint=f"say it, e.g. {option('host_memory', '512GB')}",
        )
    if job.cache_bytes > memory_bytes:
        raise ScenarioError(
            f"a cache of {fmt(job.cache_bytes, 'bytes')} is more than the {fmt(memory_bytes, 'bytes')} "
            "of memory that a host has",
            field="cache",
            hint=f"at most that, or more {option('host_memory')}",
        )
    if inputs.columns_fraction < 1.0 and job.format != "columnar":
        raise ScenarioError(
            f"{job.format} are read whole: there are no columns",
            field="columns",
            hint=f"beside {option('stored_as', 'columnar')}",
        )
