"""What a training framework keeps in memory besides the model: formats, copies, workspaces and slack.

The fixed sizes were read off runs whose allocator was logged (SimuMax v1.2, Megatron-Core 0.14 with Transformer
Engine 2.11 on B200): torch reserved 2.8 to 6.9 % more than it had allocated at the peak, 4.8 % in the mean of seven
layouts; what remained unexplained of the allocated peak was 0.02 to 0.1 GiB, a cuBLAS workspace.  The ledger
therefore marks the memory of all these runs as fitted on and does not score it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from datahall.breakdown import Source
from datahall.training.step.framework import Framework
from datahall.workload.memory.activation import Saving
from datahall.workload.memory.recipe import RECIPES, StateRecipe
from datahall.workload.precision import BF16, Precision

# fused: the gradient overwrites the logits; wide: an fp32 softmax is kept beside them (Megatron's own loss);
# eager: the framework's cross-entropy, which for a moment holds logits, log-softmax and the gradients of both
Loss = Literal["fused", "wide", "eager"]

MIB = 2.0**20
LOGGED = Source("SimuMax v1.2, allocator logs of B200 runs (docs/b200)", "2026-05", "measured")
USUAL = Source("usual sizes: NCCL 1–2 GB, CUDA context 0.5–1 GB", "2026-11", "estimate")


class Bookkeeping(msgspec.Struct, frozen=True, kw_only=True):
    """How a framework uses memory; shares are of what its tensors take."""

    state: str = "megatron"  # the recipe of its state; none where only this framework has it
    own_recipe: StateRecipe | None = None
    saving: Saving = Saving()
    loss: Loss = "fused"
    loss_bytes: float = 4.0  # of a value of the eager cross-entropy
    wide_logits: bool = False  # that loss is given logits in its own format, and the caller keeps those
    frees_gradients: bool = False  # none between steps: each is allocated as backward reaches it
    narrow_activations: bool = False  # a narrow format also keeps the inputs of the MLP's activation narrow
    placeholders: bool = True  # a gradient for each shape of weight, though kernels add to the wide buffer
    pads_vocab: bool = True  # tables are padded to 128 rows per tensor-parallel chip
    workspace_bytes: float = 64 * MIB  # cuBLAS
    num_buckets: float = 0.0  # of `bucket_values` each, held all the time to reduce and to gather
    slack_fraction: float = 0.05  # reserved by the allocator and not in use
    group_bytes: float = 0.3e9  # buffers of one NCCL communicator
    context_bytes: float = 0.6e9  # CUDA context and loaded kernels
    bucket_values: float = 5e8  # gradients in hand under ZeRO-2 and 3 (DeepSpeed's reduce_bucket_size)
    # what dropout before an adapter keeps: nothing without it, else a copy of the input and a mask, once for the
    # matrices that a product joins or for each of them
    adapter_dropout: Literal["", "joined", "each matrix"] = ""
    keeps_frozen_inputs: Literal["", "quantised", "all"] = ""  # of products whose input nothing reads
    # queries, keys and values are views of what one product made, which stays whole, and so does what adapters of some
    # of them alone made, as the source of an index copy
    keeps_joined: bool = False
    sources: tuple[Source, ...] = (LOGGED, USUAL)

    @property
    def recipe(self) -> StateRecipe:
        """What a parameter's state takes."""
        return self.own_recipe or StateRecipe.named(self.state)

    def buffers(self, value_bytes: float) -> float:
        """What libraries and exchange hold whatever the model [B], in values of so many bytes."""
        return self.workspace_bytes + self.num_buckets * self.bucket_values * value_bytes


_UNFUSED = Saving(flash=False, dropout=True)

BOOKS: Mapping[str, Bookkeeping] = MappingProxyType(
    {
        "nemo": Bookkeeping(),
        "mlperf": Bookkeeping(state="bf16-gradients", narrow_activations=True),
        "megatron-2022": Bookkeeping(saving=_UNFUSED, loss="wide", placeholders=False),
        # a reduce and an all-gather bucket
        "megatron-deepspeed": Bookkeeping(saving=_UNFUSED, loss="wide", placeholders=False, num_buckets=2.0),
        "fsdp": Bookkeeping(state="fp32", loss="eager", placeholders=False, pads_vocab=False),
        # FSDP2 sums fp32 gradients of fp32 weights, and its loss is that of the framework
        "torchtitan": Bookkeeping(state="fp32", loss="eager", placeholders=False, pads_vocab=False),
        # MLPerf's adapters: frozen weights are kept in one byte; dropout runs again in backward
        "mlperf-lora": Bookkeeping(
            state="fp8-parameters", narrow_activations=True, keeps_frozen_inputs="all"
        ),
        # its bf16 optimizer adds gradients up in fp32 beside the 16-bit ones (BLOOM chronicles, 2022-02-28)
        "megatron-deepspeed-bf16": Bookkeeping(
            state="",
            own_recipe=StateRecipe(2.0, 6.0, 4.0, 8.0),
            saving=_UNFUSED,
            loss="wide",
            placeholders=False,
            num_buckets=2.0,
        ),
        # one process, weights, gradients and moments in bf16, cross-entropy of bf16 logits
        "eager": Bookkeeping(
            state="pure-bf16",
            saving=Saving(modules="huggingface-eager"),
            loss="eager",
            loss_bytes=2.0,
            frees_gradients=True,
            placeholders=False,
            pads_vocab=False,
        ),
        # LitGPT: a loss in chunks of 128 tokens, dropout before adapters; bitsandbytes before 0.43.2
        "litgpt": Bookkeeping(
            state="pure-bf16",
            saving=Saving(modules="huggingface-eager", repeats_heads=True),
            frees_gradients=True,
            placeholders=False,
            pads_vocab=False,
            adapter_dropout="joined",
            keeps_frozen_inputs="quantised",
            keeps_joined=True,
        ),
        # PEFT under Transformers before 4.45, which widened the logits; bitsandbytes before 0.43.2
        "peft": Bookkeeping(
            state="pure-bf16",
            saving=Saving(modules="huggingface-eager", repeats_heads=True),
            loss="eager",
            wide_logits=True,
            frees_gradients=True,
            placeholders=False,
            pads_vocab=False,
            adapter_dropout="each matrix",
            keeps_frozen_inputs="quantised",
        ),
        # torchtune before its loss in chunks: logits of 32 bits, compiled
        "torchtune-wide": Bookkeeping(
            state="pure-bf16",
            loss="eager",
            wide_logits=True,
            frees_gradients=True,
            placeholders=False,
            pads_vocab=False,
        ),
        # the same compiled: what kernels between the products need is computed again, and so is the loss
        "compiled": Bookkeeping(
            state="pure-bf16",
            frees_gradients=True,
            placeholders=False,
            pads_vocab=False,
        ),
    }
)


def bookkeeping_of(framework: Framework, state: str = "", precision: Precision = BF16) -> Bookkeeping:
    """The books of a framework, with another recipe for its state where one is named, or where values of 32 bits need
    no wider copies."""
    books = BOOKS[framework.books]
    named = state or ("fp32" if precision.wide_bytes_per_value == RECIPES["fp32"].weight else "")
    return msgspec.structs.replace(books, state=named, own_recipe=None) if named else books
