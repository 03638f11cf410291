"""Traces are known by their columns, read row by row, and refused with the line that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from datahall.errors import DocumentError, ScenarioError
from datahall.scenario.requests import requests_of
from datahall.scenario.sections.traffic import Traffic as Said
from datahall.workload.traffic.recorded.replay import replay
from datahall.workload.traffic.recorded.trace_file import read_trace
from datahall.workload.traffic.requests import join
from datahall.workload.traffic.sharing import reusable_tokens
from datahall.workload.traffic.traffic import TraceReplay, Traffic, describe, generate

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
2023-11-16 18:17:04.2781650,110,27
"""
MOONCAKE = [
    {"timestamp": 0, "input_length": 6755, "output_length": 500, "hash_ids": list(range(14))},
    {"timestamp": 0, "input_length": 7319, "output_length": 490, "hash_ids": [0, *range(14, 28)]},
    {"timestamp": 3052, "input_length": 7234, "output_length": 794, "hash_ids": [0, 14, 15, *range(28, 40)]},
    {"timestamp": 6000, "input_length": 1024, "output_length": 5, "hash_ids": [0, 14]},
]


def file_of(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def mooncake(folder: Path) -> Path:
    return file_of(folder, "".join(json.dumps(row) + "\n" for row in MOONCAKE), "trace.jsonl")


def test_azure(tmp_path: Path) -> None:
    trace = read_trace(file_of(tmp_path, AZURE))
    assert trace.format.name == "azure"
    assert trace.requests.arrival_s == pytest.approx([0.0, 0.052, 0.298205], abs=1e-9)
    assert trace.requests.prompt.tolist() == [4808, 3180, 110]
    assert trace.requests.output.tolist() == [10, 8, 27]


def test_azure_of_2024_writes_its_zone(tmp_path: Path) -> None:
    head = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    text = head + "2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01Z,9,5\n"
    assert read_trace(file_of(tmp_path, text)).requests.arrival_s == pytest.approx([0.0, 0.99007])


def test_mooncake_times_are_milliseconds_and_hashes_are_blocks(tmp_path: Path) -> None:
    requests = read_trace(mooncake(tmp_path)).requests
    assert requests.arrival_s.tolist() == [0.0, 0.0, 3.052, 6.0]
    assert requests.block_tokens == 512
    assert requests.block_start.tolist() == [0, 14, 29, 44, 46]
    assert requests.blocks[14:17].tolist() == [0, 14, 15]


def test_mooncake_prompts_share_their_leading_hashes(tmp_path: Path) -> None:
    requests = read_trace(mooncake(tmp_path)).requests
    # Nothing; one block; three blocks; the whole prompt but its last token.
    assert reusable_tokens(requests).tolist() == [0, 512, 1536, 1023]


def test_hashes_stay_with_their_rows_through_chunks(tmp_path: Path) -> None:
    requests = read_trace(mooncake(tmp_path)).requests
    parts = [requests.rows(row, row + 1) for row in range(4)]
    assert parts[2].block_start.tolist() == [0, 15]
    whole = join(parts)
    assert np.array_equal(whole.blocks, requests.blocks)
    assert np.array_equal(whole.block_start, requests.block_start)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,10,2\n1.5,20,3\n", "vidur"),
        ("arrival,prompt_tokens,output_tokens\n3,10,2\n4,20,3\n", "vllm"),
        ("arrival_time,prompt_len,output_len,model\n3,10,2,a\n4,20,3,b\n", "vllm"),
        ("Timestamp,Model,Request tokens,Response tokens,Log Type\n5,a,10,2,x\n6,a,20,3,x\n", "burstgpt"),
        ('{"arrival": 3, "prompt_len": 10, "output_len": 2}\n{"arrival": 4, "prompt_len": 20, "output_len": 3}',
         "vllm"),
        ("arrival_s,prompt,output\n0,10,2\n1,20,3\n", "datahall"),
        ("\n\narrival_s,prompt,output\n0,10,2\n1,20,3\n", "datahall"),
        ("\ufeffarrival_s, prompt, output\r\n0,10,2\r\n\r\n1,20,3\r\n", "datahall"),
    ],
)  # fmt: skip
def test_other_formats_are_known_by_their_columns(tmp_path: Path, text: str, name: str) -> None:
    trace = read_trace(file_of(tmp_path, text))
    assert trace.format.name == name
    assert trace.requests.arrival_s.tolist() == [0.0, 1.0]
    assert trace.requests.prompt.tolist() == [10, 20]
    assert trace.requests.output.tolist() == [2, 3]


def test_requests_that_failed_are_left_out_and_counted(tmp_path: Path) -> None:
    trace = read_trace(file_of(tmp_path, "Timestamp,Request tokens,Response tokens\n1,5,0\n2,6,7\n3,8,9\n"))
    assert trace.num_failed == 1
    assert trace.requests.prompt.tolist() == [6, 8]
    assert trace.requests.arrival_s.tolist() == [0.0, 1.0]


HEAD = "arrival,prompt_tokens,output_tokens\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"trace.csv:1: the file is empty"),
        ("  \n\n", r"trace.csv:1: the file is empty"),
        (HEAD, r"trace.csv:1: columns but no rows"),
        ("a,b\n1,2\n", r"trace.csv:1: columns a, b are of no known trace"),
        (HEAD + "0,5,5\n1,x,5\n", r"trace.csv:3: prompt_tokens is 'x', not a number"),
        (HEAD + "0,5,5\n1,,5\n", r"trace.csv:3: prompt_tokens is missing"),
        (HEAD + "0,5,5\n1,-7,5\n", r"trace.csv:3: prompt_tokens is -7"),
        (HEAD + "0,5,5\n1,0,5\n", r"trace.csv:3: prompt_tokens is 0"),
        (HEAD + "0,5,5\n1,7,-1\n", r"trace.csv:3: output_tokens is -1"),
        (HEAD + "0,5,5\n1,7.5,1\n", r"trace.csv:3: prompt_tokens is 7.5"),
        (HEAD + "0,5,5\nnan,7,1\n", r"trace.csv:3: arrival is 'nan', not a number"),
        (HEAD + "0,5,5\n1,inf,1\n", r"trace.csv:3: prompt_tokens is 'inf', not a number"),
        (HEAD + "-1,5,5\n1,7,1\n", r"trace.csv:2: arrival is -1"),
        (HEAD + "4,5,5\n\n2,7,1\n3,7,1\n", r"trace.csv:4: earlier than the row before it \(1 such rows\).*sort"),
        (HEAD + "0,5,5\n1,7\n2,7,1\n", r"trace.csv:3: 2 values under 3 columns"),
        (HEAD + "0,5,5\n1,7", r"trace.csv:3: 2 values under 3 columns; the file seems cut off"),
        (HEAD + '0,5,5\n1,"7,5\n2,7,1\n3,7,1\n', r"trace.csv:3: not CSV"),
        (HEAD + '0,5,"' + "5" * 200_000, r"trace.csv:\d+: not CSV"),
        (AZURE + ",1,1\n", r"trace.csv:5: TIMESTAMP is missing"),
        (AZURE + "2023-11-16 18:17:05+02:00,1,1\n", r"trace.csv:5: TIMESTAMP is '2023-11-16 18:17:05\+02:00'"),
        ('{"timestamp": [0], "input_length": 5, "output_length": 1}\n', r"trace.csv:1: timestamp is \[0\]"),
        (AZURE + "yesterday,1,1\n", r"trace.csv:5: TIMESTAMP is 'yesterday'"),
        ('{"timestamp": 0, "input_length": 5, "output_length": 1}\n{"timest', r"trace.csv:2: not a JSON.*cut off"),
        ('{"timestamp": 0, "input_length": 5, "output_length": 1}\n{"timestamp": 1, "input_length": 5}\n',
         r"trace.csv:2: output_length is missing"),
        ('{"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [1, 2, 3]}\n',
         r"trace.csv:1: 3 hashes for 600 tokens.*block_tokens"),
        ('{"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": ["a"]}\n', r"trace.csv:1: hash_ids"),
        ("arrival_s,prompt,output\n0,5,0\n", r"trace.csv:2: output is 0"),
        ("arrival_s,prompt,output,after\n0,5,5,-1\n0,5,5,1\n", r"trace.csv:3: after is 1"),
    ],
)  # fmt: skip
def test_a_bad_file_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DocumentError, match=said):
        read_trace(file_of(tmp_path, text))


def test_many_problems_are_listed_up_to_twenty(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="and 80 more") as caught:
        read_trace(file_of(tmp_path, HEAD + "0,x,5\n" * 100))
    assert len(caught.value.problems) == 21


def test_a_missing_or_binary_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read"):
        read_trace(tmp_path / "nothing.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(DocumentError, match="cannot be read"):
        read_trace(tmp_path / "binary.csv")


def test_sort_orders_rows_by_time(tmp_path: Path) -> None:
    trace = read_trace(file_of(tmp_path, HEAD + "4,1,5\n2,2,5\n3,3,5\n"), sort=True)
    assert trace.requests.prompt.tolist() == [2, 3, 1]
    assert trace.requests.arrival_s.tolist() == [0.0, 1.0, 2.0]


def test_turns_cannot_be_sorted(tmp_path: Path) -> None:
    file = file_of(tmp_path, "arrival_s,prompt,output,after\n0,5,5,-1\n1,15,5,0\n")
    with pytest.raises(ScenarioError, match="cannot be sorted"):
        read_trace(file, sort=True)


def test_first_takes_the_head_of_a_file(tmp_path: Path) -> None:
    assert len(read_trace(file_of(tmp_path, AZURE), first=2).requests) == 2


def test_a_trace_can_run_faster(tmp_path: Path) -> None:
    trace = read_trace(file_of(tmp_path, AZURE))
    run = join(replay(trace, speed_ratio=2.0))
    assert run.arrival_s == pytest.approx(trace.requests.arrival_s / 2)
    with pytest.raises(ScenarioError, match="scaled by 0"):
        next(replay(trace, speed_ratio=0.0))


def test_a_trace_starts_again_with_sessions_and_hashes_of_its_own(tmp_path: Path) -> None:
    trace = read_trace(mooncake(tmp_path))
    run = join(replay(trace, num=10))
    assert len(run) == 10
    assert np.all(np.diff(run.arrival_s) >= 0)
    assert trace.duration_s == 8.0  # four requests in 6 s, and one mean gap
    assert run.arrival_s[4] == 8.0
    assert len(set(run.session)) == 10
    found = reusable_tokens(run)
    assert found[4:8].tolist() == found[:4].tolist()


def test_turns_still_follow_their_own_lap(tmp_path: Path) -> None:
    file = file_of(tmp_path, "arrival_s,prompt,output,after,session\n0,5,5,-1,0\n9,15,5,0,0\n2,5,5,-1,1\n")
    run = join(replay(read_trace(file), speed_ratio=2.0, num=6))
    assert run.after.tolist() == [-1, 0, -1, -1, 3, -1]
    assert run.arrival_s.tolist() == [0.0, 9.0, 1.0, 2.0, 9.0, 3.0]
    assert run.session.tolist() == [0, 0, 1, 2, 2, 3]


def test_a_duration_cuts_or_loops_a_trace(tmp_path: Path) -> None:
    trace = read_trace(mooncake(tmp_path))
    assert len(join(replay(trace, duration_s=5.0))) == 3
    assert len(join(replay(trace, duration_s=80.0))) == 40
    at_once = read_trace(file_of(tmp_path, HEAD + "0,1,5\n0,2,5\n"))
    assert len(join(replay(at_once, duration_s=5.0))) == 2


def test_a_trace_is_traffic(tmp_path: Path) -> None:
    traffic = requests_of(Said(trace=str(mooncake(tmp_path))), 7300)
    drawn = generate(traffic, 0)
    run = join(drawn)
    assert run.prompt.tolist() == [6755, 7299, 7234, 1024]
    assert run.output.tolist() == [500, 1, 66, 5]
    assert (drawn.cut.num_prompts, drawn.cut.num_outputs) == (1, 2)
    figures = describe(msgspec.structs.replace(traffic, max_context=0))
    assert figures.reusable_fraction == pytest.approx((512 + 1536 + 1023) / (6755 + 7319 + 7234 + 1024))
    assert figures.mean_output_tokens == pytest.approx((500 + 490 + 794 + 5) / 4)


def test_other_block_sizes_can_be_told(tmp_path: Path) -> None:
    text = '{"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [1, 2, 3]}\n'
    path = str(file_of(tmp_path, text))
    assert read_trace(path, block_tokens=256).requests.block_tokens == 256
    run = join(generate(Traffic(trace=TraceReplay(path=path, block_tokens=200, speed_ratio=1.0, first=0)), 0))
    assert run.block_tokens == 200
