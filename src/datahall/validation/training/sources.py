"""What the rows of a published source have in common and do not repeat: framework, network, usual options."""

from __future__ import annotations

import msgspec

from datahall.validation.measurement import Row, RowError
from datahall.workload.flops import Convention
from datahall.workload.memory.activation import Recompute


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One source; a value here stands only where its rows state none."""

    words: str  # in the source's name
    framework: str
    moe_framework: str = ""  # for mixtures of experts, where the framework runs them another way
    nic_bytes_per_s: float = 0.0
    recompute: Recompute = "none"
    vpp: int = 1  # 0: one layer per virtual stage
    sequence_parallel: bool = True
    fabric: str = "infiniband"
    precision: str = "bf16"
    zero: int = 0
    defaults: dict[str, str] = {}  # of other columns, with the reason in a comment beside them
    convention: Convention | None = None  # in which it counts the FLOPs of a rate or of MFU
    books: str = ""  # bookkeeping of memory, where it is not the framework's usual one
    states_slices: bool = False  # of TPUs: how its runs are laid out on them
    every_second: bool = False  # its selective recomputation keeps every second product
    gathers_stages: bool = False  # under a pipeline it keeps gathered parameters and whole gradients
    memory: str = "allocated"  # what its memory figures are: "allocated", "reserved" or "total"


# NVIDIA's recipes shard the optimizer: zero 1
SOURCES = (
    Source(words="vTrain", framework="megatron-2022", nic_bytes_per_s=12.5e9, sequence_parallel=False),
    Source(
        words="BLOOM",
        framework="megatron-deepspeed",
        nic_bytes_per_s=6.25e9,
        sequence_parallel=False,
        defaults={"vocab": "250880"},  # "250k embedding matrix"; the tokenizer of BLOOM, padded
        memory="total",  # read off nvidia-smi
    ),
    Source(words="Korthikanti", framework="megatron-2022", sequence_parallel=False),
    Source(words="SC'21", framework="megatron-2022", sequence_parallel=False),
    Source(
        words="Megatron-LM v1/v2 README",
        framework="megatron-2022",
        recompute="full",  # the README's scripts of 2020 all pass --checkpoint-activations
        sequence_parallel=False,
        defaults={"seq_len": "1024", "vocab": "51200"},  # GPT-2's context; the README's table is of GPT-2
    ),
    Source(
        words="MT-NLG",
        framework="megatron-2022",
        sequence_parallel=False,
        recompute="full",
        # § 2.4: 0.126 PFLOP/s per GPU "including the activation recomputation", micro-batch of 1
        defaults={"micro_batch": "1"},
    ),
    Source(words="(gpt3)", framework="nemo", zero=1, vpp=6, defaults={"micro_batch": "1"}),
    Source(words="(llama31_405b)", framework="nemo", zero=1, books="mlperf"),
    Source(words="(llama31_8b)", framework="nemo", zero=1, precision="fp8", books="mlperf"),
    Source(words="(llama2_70b_lora)", framework="nemo", zero=1, precision="fp8", books="mlperf-lora"),
    Source(words="dgxc", framework="nemo", moe_framework="nemo-moe", zero=1, vpp=0),
    Source(words="Megatron-Bridge", framework="nemo", moe_framework="nemo-moe", zero=1, vpp=1),
    Source(words="NeMo", framework="nemo", zero=1),
    Source(words="ModelZoo", framework="nemo", zero=1),  # Megatron-Core's models of experts
    Source(
        words="Sailor", framework="megatron-deepspeed", sequence_parallel=False
    ),  # trains with Megatron-DeepSpeed
    Source(
        words="Megatron-LM README H100",
        framework="nemo",
        recompute="selective",
        convention="full",  # training.py, num_floating_point_operations of Megatron-Core 0.8
        defaults={"micro_batch": "1"},  # as in examples/gpt3 of the same release
    ),
    Source(words="SimuMax", framework="megatron-core"),
    Source(words="llm-foundry", framework="fsdp", nic_bytes_per_s=25e9, fabric="roce"),
    Source(
        words="torchtitan",
        framework="torchtitan",
        nic_bytes_per_s=50e9,
        defaults={"seq_len": "8192", "recompute": "selective"},  # train_configs/llama3_*.toml
        memory="reserved",  # torchtitan logs max_reserved
        every_second=True,
        gathers_stages=True,
    ),
    Source(
        words="MegaScale",
        framework="megatron-2022",
        nic_bytes_per_s=25e9,
        fabric="roce",
        recompute="selective",
        vpp=6,  # § 6.1: six virtual stages for 175B
        defaults={"micro_batch": "1", "vocab": "64000"},  # table 1: vocabulary of 64,000
    ),
    Source(
        words="Llama 3 herd",
        framework="nemo",
        fabric="roce",
        nic_bytes_per_s=50e9,
        vpp=8,  # § 3.3.2: 128 places for 126 layers on 16 stages
        convention="causal",
        defaults={"micro_batch": "1", "global_batch_seqs": "2048"},  # 16M tokens of 8,192
    ),
    Source(
        words="MaxText published",
        framework="maxtext",
        moe_framework="maxtext-moe",
        convention="full",
        states_slices=True,
    ),
    Source(words="tpu-recipes", framework="maxtext", moe_framework="maxtext-moe", states_slices=True),
    Source(words="PaLM paper", framework="maxtext", states_slices=True),
)


def source_of(row: Row) -> Source:
    """The source of a row; one we know nothing of cannot be expressed."""
    name = row.text("source")
    found = next((one for one in SOURCES if one.words in name), None)
    if found is None:
        raise RowError(f'no framework is known for source "{name}"')
    return found
