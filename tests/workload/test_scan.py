"""A recurrence over whole sequences: what its kernels move."""

from __future__ import annotations

import pytest

from datahall.catalog import load
from datahall.workload.backward import training_pass
from datahall.workload.forward import forward_pass
from datahall.workload.scan import CHUNK, chunked_scan

NANO = load().model("nemotron-3-nano-30b-a3b")


def test_states_are_written_and_read_once_per_chunk() -> None:
    narrow, _, _ = chunked_scan(4096.0, 1024.0, 128.0, CHUNK)
    wide, _, _ = chunked_scan(4096.0, 2048.0, 256.0, CHUNK)  # as many key heads, states twice as large
    more_states = 4096.0 * (256.0 - 128.0)
    assert wide - narrow == pytest.approx(6.0 * more_states + 8.0 * 1024.0 * CHUNK)


def test_training_moves_states_that_serving_keeps_on_chip() -> None:
    trained = {one.name: one for one in training_pass(NANO, batch=1.0, seq=4096.0)}
    served = {one.name: one for one in forward_pass(NANO, batch=1, query=4096)}
    assert "conv_scan" in served
    assert "conv_scan" not in trained
    parts = [trained[name] for name in ("convolution", "scan", "scan_gate")]
    assert sum(one.read_bytes + one.write_bytes for one in parts) > 1.5 * (
        served["conv_scan"].read_bytes + served["conv_scan"].write_bytes
    )


def test_backward_forms_states_again_before_it_undoes_them() -> None:
    trained = {one.name: one for one in training_pass(NANO, batch=1.0, seq=4096.0)}
    forward, backward = trained["scan"], trained["scan_backward"]
    ratio = (backward.read_bytes + backward.write_bytes) / (forward.read_bytes + forward.write_bytes)
    assert 2.5 < ratio < 4.0
    assert backward.backward
    assert backward.count == forward.count
