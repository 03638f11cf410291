"""The data path that a question describes: the job, the stores side by side, and what else they are used for."""

from __future__ import annotations

from math import isnan

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.catalog.entries.stored.dataset import Dataset
from datahall.counted import counted
from datahall.datapath import demand
from datahall.datapath.pipeline import Pipeline, Store
from datahall.datapath.sections.text import TEXT
from datahall.errors import ScenarioError, UnsupportedError, option
from datahall.scenario.scenario import Scenario, model_of
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.operations.datapath import DataPath
from datahall.scenario.usual import USUAL_CHIP
from datahall.scenario.words import Format, Shuffle
from datahall.units import fmt

PAGE_CACHE, PINNED = "page-cache", "pinned"
LEAST_STEPS = 500  # of an epoch, for which MLPerf Storage makes a data set larger


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked, made into a job and its stores."""

    inputs: DataPath
    chip: Chip
    dataset: Dataset
    model: Model | None
    job: Pipeline
    stores: tuple[Store, ...]
    checkpoint_bytes: float
    promised_fraction: float  # of their time, that chips are to work
    host_memory_bytes: float
    num_replicas: int  # that load their weights at once
    copy_bytes_per_s: float  # pinned memory of a host to a chip

    @property
    def name(self) -> str:
        """What is trained."""
        return self.model.name if self.model else self.dataset.name


def asked_of(scenario: Scenario) -> Asked:
    """Read a question; what cannot be, is refused with the input that is at fault."""
    inputs, fabric = scenario.one(DataPath), scenario.one(FabricDesign)
    catalog = scenario.catalog
    chip = catalog.chip(fabric.chip or USUAL_CHIP)
    is_text = not catalog.knows("dataset", inputs.workload)
    model = model_of(inputs.workload, catalog) if is_text else None
    dataset = catalog.dataset(TEXT if is_text else inputs.workload)
    assert fabric.chips is not None  # the verb requires it
    job = _job(inputs, dataset, model, chip, fabric.chips, catalog.storage(PAGE_CACHE).stream_bytes_per_s)
    _check(inputs, job)
    size = _checkpoint(inputs, dataset, model)
    stores = tuple(
        Store(
            storage=storage,
            num_units=inputs.units,
            away_s=inputs.away_s if storage.is_shared else 0.0,
            checkpoint_bytes=size,
            interval_s=inputs.interval_s,
        )
        for storage in map(catalog.storage, inputs.storage)
    )
    return Asked(
        inputs=inputs, chip=chip, dataset=dataset, model=model, job=job, stores=stores, checkpoint_bytes=size,
        promised_fraction=inputs.utilisation_fraction, host_memory_bytes=inputs.host_memory_bytes,
        num_replicas=inputs.replicas, copy_bytes_per_s=catalog.storage(PINNED).stream_bytes_per_s,
    )  # fmt: skip


def _job(
    inputs: DataPath, dataset: Dataset, model: Model | None, chip: Chip, num_chips: int, cache_stream: float
) -> Pipeline:
    batch = inputs.batch or (demand.CONTEXT if model else dataset.batch)
    sample_bytes = inputs.sample_bytes or dataset.sample_bytes
    format = _format(inputs, dataset)
    return Pipeline(
        num_chips=num_chips,
        num_chips_per_host=inputs.chips_per_host,
        step_s=inputs.step_s or _step_s(inputs, dataset, model, chip, batch),
        batch=batch,
        sample_bytes=sample_bytes,
        spread_bytes=dataset.spread_bytes * sample_bytes / dataset.sample_bytes,
        dataset_bytes=inputs.dataset_bytes
        or max(dataset.size_bytes, LEAST_STEPS * batch * num_chips * sample_bytes),
        num_samples_per_file=dataset.num_samples_per_file,
        format=format,
        shuffle=_shuffle(inputs, format),
        columns_fraction=inputs.columns_fraction,
        num_readers=inputs.readers or dataset.num_readers,
        num_prefetch=inputs.prefetch_depth,
        prepare_s=inputs.prepare_s or 0.0,
        num_cores=inputs.cores,
        cache_bytes=inputs.cache_bytes,
        keeping="pinned" if inputs.keeping == "pinned" else "lru",
        cache_stream_bytes_per_s=cache_stream,
        nic_bytes_per_s=inputs.host_nic_bytes_per_s,
    )


def _step_s(inputs: DataPath, dataset: Dataset, model: Model | None, chip: Chip, batch: int) -> float:
    if model is not None:
        return batch / demand.tokens_per_s(model, chip, inputs.mfu_fraction)
    if chip.name not in dataset.step_s:
        known = ", ".join(dataset.step_s) or "no chip"
        raise UnsupportedError(
            f"nobody published how long {chip.name} works on a batch of {dataset.name}",
            hint=f"known of {known}; or say it: {option('step', '200ms')}",
        )
    usual: float = dataset.step_s[chip.name] * batch / dataset.batch
    return usual


def _format(inputs: DataPath, dataset: Dataset) -> Format:
    if inputs.stored_as is not None:
        found: Format = inputs.stored_as  # type: ignore[assignment]  # one of the words, as it was read
        return found
    return "shards" if dataset.num_samples_per_file > 1 else "files"


def _shuffle(inputs: DataPath, format: Format) -> Shuffle:
    if inputs.shuffle is not None:
        found: Shuffle = inputs.shuffle  # type: ignore[assignment]  # one of the words, as it was read
        return found
    return "random" if format == "files" else "buffer"


def _check(inputs: DataPath, job: Pipeline) -> None:
    step_bytes = job.num_chips * job.batch * job.sample_bytes
    if job.dataset_bytes < step_bytes:
        raise ScenarioError(
            f"a data set of {fmt(job.dataset_bytes, 'bytes')} is less than one step of "
            f"{counted(job.num_chips, 'chip')} reads ({fmt(step_bytes, 'bytes')})",
            field="dataset",
            hint=f"more data, fewer chips, or a smaller {option('batch')}",
        )
    if job.cache_bytes > inputs.host_memory_bytes:
        raise ScenarioError(
            f"a cache of {fmt(job.cache_bytes, 'bytes')} is more than the {fmt(inputs.host_memory_bytes, 'bytes')} "
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


def _checkpoint(inputs: DataPath, dataset: Dataset, model: Model | None) -> float:
    if inputs.checkpoint_bytes is not None:
        return inputs.checkpoint_bytes
    each = dataset.checkpoint_bytes_per_parameter
    return demand.checkpoint_bytes(model, each) if model and not isnan(each) else 0.0
