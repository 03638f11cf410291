"""Files of measurements: told apart, and read whole whatever is wrong with them."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datahall.errors import DocumentError, UnknownNameError
from datahall.validation import validate
from datahall.validation.kernels import FORMATS, SYSTEMS
from datahall.validation.ledger import shipped_files
from datahall.validation.measurement import format_of, read_rows

GEMM = "dtype,m,n,k,ms\n"
GOOD = "bf16,16,4096,4096,0.02\n"

EXAMPLES = {
    "GEMM": (GEMM, GOOD),
    "attention": ("kind,batch,q_len,kv_len,heads,kv_heads,head_dim,ms\n", "decode,8,1,4096,32,8,128,0.05\n"),
    "grouped GEMM": (
        "tokens,experts,topk,hidden,expert_ffn,op,how,ms\n",
        "64,8,2,4096,14336,gate_up,grouped_mm,0.5\n",
    ),
    "element-wise": ("op,tokens,width,ms\n", "rmsnorm,512,4096,0.012\n"),
    "forward passes": (
        "model,precision,layers_run,phase,batch,tokens_or_ctx,ms_run\n",
        "llama3-8b,bf16,32,decode,1,1024,5.0\n",
    ),
    "GEMM table": ("system,gemm_dtype,m,n,k,latency_ms\n", "h100_sxm,bfloat16,16,4096,4096,0.02\n"),
    "attention table": (
        "system,batch_size,q_len,kv_len_past,num_heads,num_key_value_heads,head_dim,kv_cache_dtype,latency_ms\n",
        "a100_sxm,8,1,4095,32,8,128,bfloat16,0.1\n",
    ),
    "MoE table": (
        "system,moe_dtype,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,latency_ms\n",
        "b200_sxm,bfloat16,64,4096,14336,2,8,1,1,0.5\n",
    ),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.csv"


def problem_of(path: Path) -> str:
    with pytest.raises(DocumentError) as caught:
        validate("kernels", path)
    assert str(path) in caught.value.message
    assert len(caught.value.problems) == 1
    return repr(caught.value.problems[0])


def reasons_of(path: Path) -> dict[str, int]:
    return {reason.reason: reason.rows for reason in validate("kernels", path).unsupported}


def test_an_example_of_every_format_is_known() -> None:
    assert EXAMPLES.keys() == {one.name for one in FORMATS}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_file_is_told_by_its_columns_whatever_else_it_holds(name: str, file: Path) -> None:
    header, row = EXAMPLES[name]
    file.write_text(f"note,{header}" + f"a remark,{row}" * 3, encoding="utf-8")
    assert format_of(file, read_rows(file)[0], FORMATS).name == name
    card = validate("kernels", file)
    assert (card.rows, card.scored, card.unsupported) == (3, 3, ())
    assert card.overall.median_ape < 90


@pytest.mark.parametrize("name", EXAMPLES)
def test_columns_may_stand_in_any_order(name: str, file: Path) -> None:
    header, row = (line.strip().split(",") for line in EXAMPLES[name])
    file.write_text(",".join(header[::-1]) + "\n" + ",".join(row[::-1]) + "\n", encoding="utf-8")
    assert validate("kernels", file).scored == 1


def test_shipped_files_are_told_apart() -> None:
    found = {
        path.stem: format_of(path, read_rows(path)[0], FORMATS).name for path in shipped_files("kernels")
    }
    assert found == {
        "h200_gemm": "GEMM",
        "h200_attention": "attention",
        "h200_moe_gemm": "grouped GEMM",
        "h200_elementwise": "element-wise",
        "h200_engine_infer": "forward passes",
        "h200_engine_second_machine": "forward passes",
    }


def test_a_missing_file_says_so(file: Path) -> None:
    assert "cannot be read: No such file" in problem_of(file)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "cannot be read: Is a directory" in problem_of(tmp_path)


@pytest.mark.parametrize("text", ["", "\n", "\n\n\n"])
def test_an_empty_file_says_what_the_first_line_is_for(text: str, file: Path) -> None:
    file.write_text(text)
    assert "is empty; the first line names the columns" in problem_of(file)


def test_a_header_alone_holds_no_rows(file: Path) -> None:
    file.write_text(GEMM)
    assert f"{file}:1: has a header and no rows" in problem_of(file)


def test_unknown_columns_name_the_nearest_format_and_what_it_lacks(file: Path) -> None:
    file.write_text("dtype,m,n,kk,ms\n" + GOOD)
    problem = problem_of(file)
    assert 'looks like GEMM but lacks "k" (is it "kk"?)' in problem
    for one in FORMATS:
        assert f"{one.name}: {', '.join(sorted(one.columns))}" in problem


def test_a_file_of_another_kind_is_not_read(file: Path) -> None:
    file.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff\xfe" * 50)
    assert "is no UTF-8 text" in problem_of(file)


def test_an_open_quote_does_not_swallow_the_rows_after_it(file: Path) -> None:
    file.write_text(GEMM + GOOD + 'bf16,16,4096,"4096,0.02\n' + GOOD * 5)
    assert "is not a CSV file" in problem_of(file)


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("fast", 'column "ms" is not a number'),
        ("", 'column "ms" is not a number'),
        ("nan", 'column "ms" is not finite'),
        ("inf", 'column "ms" is not finite'),
        ("0", 'column "ms" is not above zero'),
        ("-0.02", 'column "ms" is not above zero'),
        ("1e300", 'column "ms" is beyond 1e+12'),
        ("1e-300", 'column "ms" is below 1e-12'),
    ],
)
def test_a_cell_that_is_no_time_is_counted_with_the_reason(cell: str, reason: str, file: Path) -> None:
    file.write_text(GEMM + GOOD + f"bf16,16,4096,4096,{cell}\n" * 2)
    card = validate("kernels", file)
    assert (card.rows, card.scored) == (3, 1)
    assert reasons_of(file) == {reason: 2}


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("-1", 'column "m" is not above zero'),
        ("1.5", 'column "m" is not a whole number'),
        ("1e300", 'column "m" is beyond 1e+12'),
        ("many", 'column "m" is not a number'),
    ],
)
def test_a_cell_that_is_no_size_is_counted_with_the_reason(cell: str, reason: str, file: Path) -> None:
    file.write_text(GEMM + GOOD + f"bf16,{cell},4096,4096,0.02\n")
    assert reasons_of(file) == {reason: 1}


def test_the_largest_sizes_are_predicted_and_not_refused(file: Path) -> None:
    file.write_text(GEMM + "bf16,1e12,1e12,1e12,1e12\n")
    assert validate("kernels", file).scored == 1


@pytest.mark.parametrize("cut", range(1, len(GOOD.strip())))
def test_a_last_line_that_was_cut_off_is_counted(cut: int, file: Path) -> None:
    file.write_text(GEMM + GOOD * 2 + GOOD[:cut])
    card = validate("kernels", file)
    assert card.rows == 3
    assert card.scored + sum(reason.rows for reason in card.unsupported) == 3
    assert card.scored >= 2


@pytest.mark.parametrize(
    ("bom", "newline", "gap"),
    [("\ufeff", "\n", ""), ("", "\r\n", ""), ("\ufeff", "\r\n", " "), ("", "\n", "\n")],
)
def test_spreadsheets_write_marks_and_line_ends_of_their_own(
    bom: str, newline: str, gap: str, file: Path
) -> None:
    """A byte-order mark, CRLF, spaces after commas, blank lines."""
    text = GEMM + GOOD * 2 + (gap if gap == "\n" else "") + GOOD
    if gap == " ":
        text = text.replace(",", ", ")
    file.write_bytes((bom + text.replace("\n", newline)).encode())
    card = validate("kernels", file)
    assert (card.rows, card.scored, card.unsupported) == (3, 3, ())


def test_more_cells_than_columns_are_ignored(file: Path) -> None:
    file.write_text(GEMM + GOOD.strip() + ",one,too,many\n")
    assert validate("kernels", file).scored == 1


@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("GEMM", "bf16", "fp64", 'GEMM in "fp64" is not modelled'),
        ("GEMM", "bf16", "nvfp4", "NVIDIA H200 SXM has no FP4"),
        ("attention", "8,1,4096", "8,4096,1", "more new tokens than tokens"),
        ("element-wise", "rmsnorm", "dropout", 'element-wise operation "dropout" is not modelled'),
        ("forward passes", "llama3-8b", "llama9-8b", '"llama9-8b" is not a model in the catalogue'),
        ("forward passes", "bf16,32", "bf16,64", "llama-3.1-8b has fewer layers than were run"),
        ("forward passes", "decode", "thinking", 'phase "thinking" is not prefill or decode'),
        ("forward passes", "bf16", "fp3", '"fp3" is not a precision'),
        ("forward passes", "llama3-8b", "llama3-8b-tptwo", '"tptwo" is not a share of a model'),
        ("forward passes", "llama3-8b", "llama3-8b-tp3shard", "breaks the rule"),
        ("GEMM table", "h100_sxm", "b60", 'system "b60" has no calibrated kernels'),
        ("GEMM table", "bfloat16", "int3", "GEMM in int3 is not modelled"),
        ("attention table", "4095", "-4095", 'column "kv_len_past" is below zero'),
        ("attention table", "bfloat16", "int4", "attention over a cache in int4 is not modelled"),
        ("grouped GEMM", "64,8,2", "64,2,8", "more experts per token than experts"),
        ("MoE table", "14336,2,8", "14336,8,2", "more experts per token than experts"),
        ("MoE table", "bfloat16", "int3", "MoE layer in int3 is not modelled"),
    ],
)
def test_what_cannot_be_expressed_is_counted_with_the_reason(
    name: str, old: str, new: str, reason: str, file: Path
) -> None:
    header, row = EXAMPLES[name]
    assert old in row
    file.write_text(header + row + row.replace(old, new))
    card = validate("kernels", file)
    assert (card.rows, card.scored) == (2, 1)
    (found,) = card.unsupported
    assert reason in found.reason
    assert found.rows == 1


cells = st.one_of(
    st.sampled_from(["", "0", "-1", "1", "1.5", "16", "4096", "1e9", "1e300", "nan", "inf", "x", '"', " 8 "]),
    st.sampled_from(
        ["bf16", "fp8", "decode", "prefill", "llama3-8b", "mixtral-8x7b-tp8shard", "gate_up", "bmm"]
    ),
    st.sampled_from([*SYSTEMS, "b60", "bfloat16", "nvfp4", "rmsnorm", "yes"]),
    st.text(max_size=5),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_row_is_ever_lost_and_none_stops_the_others(file: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(EXAMPLES)))
    header, row = (line.strip().split(",") for line in EXAMPLES[name])
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([*header, "fitted"])
    num_rows = data.draw(st.integers(1, 5))
    for _ in range(num_rows):
        changed = data.draw(st.dictionaries(st.integers(0, len(row)), cells, max_size=3))
        writer.writerow([changed.get(place, cell) for place, cell in enumerate([*row, ""])])
    file.write_text(text.getvalue(), encoding="utf-8", newline="")
    card = validate("kernels", file)
    assert card.rows == num_rows
    assert card.rows == card.scored + card.fitted + sum(reason.rows for reason in card.unsupported)


def test_several_files_make_one_card(tmp_path: Path) -> None:
    paths = []
    for number, name in enumerate(EXAMPLES):
        paths.append(tmp_path / f"{number}.csv")
        paths[-1].write_text("".join(EXAMPLES[name]))
    card = validate("kernels", [str(path) for path in paths])
    assert card.rows == card.scored == len(EXAMPLES)
    assert sum(group.rows for group in card.by_source.values()) == len(EXAMPLES)


def test_an_unknown_domain_names_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match="did you mean: kernels"):
        validate("kernel")
