"""The data path that a question describes: the job, the stores side by side, and what else they are used for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.catalog.entries.stored.dataset import Dataset
from datahall.catalog.entries.stored.storage import Storage
from datahall.counted import counted
from datahall.datapath.benchmark import LEAST_STEPS
from datahall.datapath.demand import Laid, fastest, size_of, tokens_per_s, trained
from datahall.datapath.pipeline import Pipeline, Store
from datahall.datapath.sections.text import TEXT
from datahall.errors import ScenarioError, UnsupportedError, option
from datahall.fabric.design.parts import usual_server
from datahall.reliability.job import RunningJob
from datahall.scenario.idle import does_nothing, is_changed
from datahall.scenario.scenario import Scenario, model_of
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.operations.datapath import DataPath
from datahall.scenario.usual import USUAL_CHIP, USUAL_SEQ
from datahall.scenario.words import Format, Shuffle
from datahall.units import fmt

PAGE_CACHE, PINNED = "page-cache", "pinned"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked, made into a job and its stores."""

    inputs: DataPath
    chip: Chip
    dataset: Dataset
    model: Model | None
    training: RunningJob | None  # of a model, whose step nobody says
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


def asked_of(scenario: Scenario, laid: Laid) -> Asked:
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
        training = fastest(trained(scenario, inputs.workload), laid)
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
    _check(inputs, job)
    size = inputs.checkpoint_bytes
    if size is None:
        size = size_of(trained(scenario, inputs.workload)).total_bytes if model is not None else 0.0
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
        host_memory_bytes=inputs.host_memory_bytes, num_replicas=inputs.replicas,
        copy_bytes_per_s=catalog.storage(PINNED).stream_bytes_per_s,
    )  # fmt: skip


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
