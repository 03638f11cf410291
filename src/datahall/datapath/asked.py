"""What is asked of a data path, read: the job, the stores side by side, and what else they are used for."""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.catalog.entries.stored.dataset import Dataset
from datahall.datapath.cold_start import Loader
from datahall.datapath.pipeline import Pipeline, Store
from datahall.reliability.job import RunningJob
from datahall.scenario.sections.operations.datapath import DataPath


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
    host_memory_bytes: float  # for caches; 0 where nobody says it nor published it
    num_replicas: int  # that load their weights at once
    loader: Loader  # of those weights

    @property
    def name(self) -> str:
        """What is trained."""
        return self.model.name if self.model else self.dataset.name
