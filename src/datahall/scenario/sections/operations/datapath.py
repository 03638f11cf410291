"""How a job reads its data: samples, loader, caches, storage, and what else storage is used for."""

from typing import Annotated

from datahall.scenario.field import Section
from datahall.scenario.kinds import Choice, Count, Listed, Name, Quantity, Share
from datahall.scenario.words import DATA_FORMATS, KEEPINGS, SHUFFLES, Format, Keeping, Shuffle

USUAL_STORAGE = ("nvme", "parallel", "object")
USUAL_PREFETCH = 2  # batches, as PyTorch's DataLoader and DLIO have it
USUAL_CORES = (
    112  # assumed of every host: a DGX H100 has two sockets of 56; catalogues name CPUs, not their cores
)
USUAL_NIC_BYTES_PER_S = (
    50e9  # 400 Gb/s, assumed of every host: ports to storage stand beside those of the chips
)
USUAL_INTERVAL_S = 1800.0
USUAL_KEEPING: Keeping = "lru"
SLOWEST_BYTES_PER_S = 1e3


class DataPath(Section, frozen=True, kw_only=True):
    """What is read, how, and from where."""

    workload: Annotated[
        str,
        Name(
            "Data set: resnet50, unet3d, cosmoflow, …; or a model that is trained on text.",
            of="workload",
            metavar="WORKLOAD",
            example="resnet50",
        ),
    ] = ""
    storage: Annotated[
        tuple[str, ...],
        Listed("Where the data lies, several side by side.", of=Name("", of="storage"), metavar="NAMES"),
    ] = USUAL_STORAGE
    units: Annotated[
        int,
        Count("Drives of each host, or nodes or prefixes of what hosts share.", most=1_000_000),
    ] = 1
    utilisation_fraction: Annotated[float, Share("Share of their time that chips must work.", above=True)] = (
        0.9
    )
    chips_per_host: Annotated[
        int | None, Count("Chips that load over one host (default: as the chip is sold).", most=1024)
    ] = None
    batch: Annotated[
        int | None, Count("Samples of a chip and step (default: the workload's).", most=2**30)
    ] = None
    step_s: Annotated[
        float | None,
        Quantity(
            "How long a chip works on a batch (default: as measured for the workload, or of a model's fastest layout).",
            above=True,
        ),
    ] = None
    mfu_fraction: Annotated[
        float | None,
        Share(
            "Share of a chip's peak at which a model trains on text (default: that of its fastest layout).",
            above=True,
            name="mfu",
            against=("step",),
        ),
    ] = None
    sample_bytes: Annotated[
        float | None, Quantity("Size of a sample, or of a token (default: the workload's).", least=1.0)
    ] = None
    dataset_bytes: Annotated[
        float | None, Quantity("Size of the data set (default: the workload's).", least=1.0)
    ] = None
    stored_as: Annotated[
        Format | None,
        Choice(
            f"How samples lie: {', '.join(DATA_FORMATS)} (default: the workload's).", options=DATA_FORMATS
        ),
    ] = None
    columns_fraction: Annotated[
        float, Share("Share of a sample's bytes that columns are read of.", needs=("stored_as",), above=True)
    ] = 1.0
    shuffle: Annotated[
        Shuffle | None,
        Choice(
            f"Order of reading: {', '.join(SHUFFLES)} (default: random of files, a buffer of shards).",
            options=SHUFFLES,
        ),
    ] = None
    readers: Annotated[
        int | None, Count("Readers that load for a chip (default: the workload's).", most=4096)
    ] = None
    prefetch_depth: Annotated[int, Count("Batches that may lie ready before a chip.", least=0, most=4096)] = (
        USUAL_PREFETCH
    )
    prepare_s: Annotated[
        float | None,
        Quantity("What a core takes to decode or tokenise a sample (default: nothing).", most=3600.0),
    ] = None
    cores: Annotated[
        int, Count("Cores of a host that readers prepare samples on.", most=4096, needs=("prepare",))
    ] = USUAL_CORES
    cache_bytes: Annotated[float, Quantity("Memory of a host that caches the data set.")] = 0.0
    keeping: Annotated[
        Keeping,
        Choice(
            "What the cache keeps: lru, or pinned (a part, for good).", options=KEEPINGS, needs=("cache",)
        ),
    ] = USUAL_KEEPING
    host_memory_bytes: Annotated[
        float | None, Quantity("Memory of a host (default: as the chip is sold).", above=True)
    ] = None
    host_nic_bytes_per_s: Annotated[
        float, Quantity("Network of a host towards shared storage, one way.", least=SLOWEST_BYTES_PER_S)
    ] = USUAL_NIC_BYTES_PER_S
    away_s: Annotated[
        float, Quantity("Round trip to the region where shared storage is; none: the same.", most=60.0)
    ] = 0.0
    checkpoint_bytes: Annotated[
        float | None,
        Quantity("Size of a checkpoint (default: of a model, its weights and the optimizer's state)."),
    ] = None
    interval_s: Annotated[
        float, Quantity("Time between checkpoints.", above=True, name="checkpoint_every")
    ] = USUAL_INTERVAL_S
    replicas: Annotated[
        int, Count("Replicas of a model that load their weights at once.", most=1_000_000)
    ] = 1
