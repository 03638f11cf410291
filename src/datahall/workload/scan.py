"""A recurrence over whole sequences in training, chunk by chunk: what its kernels move, forward and backward.

Within a chunk of Q tokens the recurrence is attention without softmax; between chunks it is a state per head that one
kernel forms, one passes on and one reads.  States are as large as the tokens of many chunks, and all kernels read and
write them through memory: per token and layer

    x = values      key = num_key_heads · key_dim      state = values · key_dim / Q      score = num_key_heads · Q

Forward: the states of chunks (x, B → fp32), their passing on (fp32 → bf16), the scores B·C (fp32), the scan (scores, x,
C, states → output).  Backward forms states and scores again, then the gradients of states, their passing back, and
those of x, B, C, scores and decays.  Reference: Dao and Gu (2024), Transformers are SSMs, section 6; the kernels of
mamba_chunk_scan_combined (state-spaces/mamba, ssd_combined.py), counted.
"""

from __future__ import annotations

import msgspec

from datahall.workload.operator import Number, Operator, Stream

CHUNK = 128.0  # tokens; Megatron-Core's MambaMixer


class Traffic(msgspec.Struct, frozen=True):
    """Bytes moved for each value of x, of one of the two keys, of the states and of the scores."""

    x_bytes: float
    key_bytes: float
    state_bytes: float
    score_bytes: float

    def total(self, x: Number, key: Number, state: Number, score: Number) -> Number:
        return self.x_bytes * x + self.key_bytes * key + self.state_bytes * state + self.score_bytes * score


FORWARD_READS = Traffic(4.0, 8.0, 4.0 + 2.0, 4.0)
FORWARD_WRITES = Traffic(2.0, 0.0, 4.0 + 2.0, 4.0)
BACKWARD_READS = Traffic(10 * 2.0, 7 * 2.0, 4.0 + 6.0 + 4.0 + 4.0 + 2.0, 4.0 + 8.0 + 4.0)
BACKWARD_WRITES = Traffic(2.0, 4 * 4.0, 4.0 + 2.0 + 4.0 + 4.0, 4.0 + 4.0)
FORWARD_KERNELS, BACKWARD_KERNELS = 5.0, 13.0  # the decays' cumulative sums and gradients included


class ChunkedScan(Stream, frozen=True, kw_only=True):
    """A scan whose backward is not the mirror image of its forward."""

    backward_read_bytes: Number
    backward_write_bytes: Number


def chunked_scan(
    values: Number, keys: Number, key_dim: float, tokens: Number
) -> tuple[Number, Number, ChunkedScan]:
    """Bytes in and out of the forward scan of `tokens` tokens, and its shape.

    `keys` is the width of one of B and C; `key_dim` the state that each value has.
    """
    key_heads = keys / key_dim
    sizes = (values, keys, values * key_dim / CHUNK, key_heads * CHUNK)
    shape = ChunkedScan(
        num_kernels=FORWARD_KERNELS,
        backward_read_bytes=tokens * BACKWARD_READS.total(*sizes),
        backward_write_bytes=tokens * BACKWARD_WRITES.total(*sizes),
    )
    return tokens * FORWARD_READS.total(*sizes), tokens * FORWARD_WRITES.total(*sizes), shape


def scan_gradient(forward: Operator, shape: ChunkedScan) -> Operator:
    """The kernels that undo a scan."""
    return msgspec.structs.replace(
        forward,
        name=f"{forward.name}_backward",
        shape=Stream(BACKWARD_KERNELS),
        flop=2 * forward.flop,
        read_bytes=shape.backward_read_bytes,
        write_bytes=shape.backward_write_bytes,
        backward=True,
    )
