"""What a file or the declaration alone decides is refused before NumPy, kernels or compiled loops are loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("numpy", "numba", "rich", "scipy")
FILES = {
    "empty.csv": b"",
    "blank.csv": b"\n \n",
    "binary.csv": bytes(range(128, 256)) * 8,
    "other.csv": b"name,age\nx,3\n",
    "wrong.json": b'{"hidden_size": 1}',
    "list.json": b"[1, 2]",
    "words.sh": b"python train.py\n",
    "binary.sh": bytes(range(128, 256)),
}
# the command, and what its error must speak of
WRONG = (
    ("simulate serve llama-3.1-8b --trace empty.csv", "the file is empty"),
    ("simulate serve llama-3.1-8b --trace blank.csv", "the file is empty"),
    ("simulate serve llama-3.1-8b --trace binary.csv", "not UTF-8 text"),
    ("simulate serve llama-3.1-8b --trace other.csv", "columns name, age are of no known trace"),
    (
        "show collective all-reduce --chips 8 --failure switches=1",
        "switches of --failure does nothing here: it needs --on",
    ),
    (
        "simulate train llama-3.1-8b --chips 8 --failure nics=1",
        "nics of --failure does nothing here: it needs --on",
    ),
    (
        "plan serve llama-3.1-8b --rate 1 --failure nics=1",
        "nics of --failure does nothing here: it needs --on",
    ),
    ("show memory llama-3.1-8b --layout words.sh", "holds nothing that lays out a training run"),
    ("simulate train llama-3.1-8b --chips 8 --layout binary.sh", "is not UTF-8 text"),
    ("show collective all-reduce", "how many chips are there?"),
    ("show collective all-reduce --on fat-tree", "how many chips shall fat-tree join?"),
    ("show fabric fat-tree", "how many chips shall fat-tree join?"),
    ("show fabric meta-24k-roce --chips 512", "meta-24k-roce has 24,576 chips, not 512"),
    ("show fabric meta-24k-roce --radix 64", "--radix does nothing here"),
    (
        "plan train llama-3.1-8b --tokens 1T --chips 64 --on nvl72 --chip h200-sxm",
        "NVIDIA DGX H200 has scale-up domains of 8, not 72",
    ),
    (
        "simulate train llama-3.1-8b --chips 64 --on torus --oversubscription 2:1",
        "a torus has no oversubscription",
    ),
    (
        "plan train llama-3.1-8b --tokens 1T --chips 64 --on torus --chip tpu-v4 --precision fp8",
        "Google TPU v4 has no FP8",
    ),
    (
        "plan train llama-3.1-8b --tokens 1T --chips 64 --on fat-tree --oversubscription 4:1",
        "4:1 speaks of 2 tiers, and 64 chips make 1",
    ),
    ("simulate train llama-3.1-8b --chips 60 --on clos --oversubscription 1:1,2:1", "and 64 chips make 1"),
    ("simulate serve llama-3.1-8b --rate 5 --duration 1ms", "not one request comes in that time"),
    ("simulate serve llama-3.1-8b --rate 5 --hourly 1,2,3", "3 hourly factors, the least 1"),
    (
        "plan train llama-3.1-70b --tokens 1T --chips 256 --on meta-24k-roce --chip h200",
        "meta-24k-roce was built of NVIDIA H100 SXM",
    ),
    (
        "plan train llama-3.1-70b --tokens 1T --chips 60 --on fat-tree --failure chips=64",
        "there is no chip 64",
    ),
    (
        "show fabric fat-tree dragonfly hyperx --chips 4096 --nic 200Gb/s --chip h200",
        "4,096 chips do not fit a 2D HyperX",
    ),
    ("show fabric hyperx --chips 4096 --nic 200Gb/s --chip h200", "nearest: --chips 2744 or --radix 46"),
    ("show fabric torus --chips 7", "7 chips make no 3D torus"),
    ("simulate fabric --on mesh --chips 7 --job size=1MB", "7 chips make no 3D torus"),
    (
        "simulate fabric --on fat-tree --chips 64 --job size=1MB,ranks=1",
        "a collective joins two chips or more",
    ),
    (
        "simulate fabric --on fat-tree --chips 64 --job size=1MB --loss 10%",
        "infiniband does not drop packets",
    ),
    ("validate training --data gone.csv", "gone.csv: cannot be read: No such file"),
    ("validate kernels --data gone.csv", "gone.csv: cannot be read: No such file"),
    ("show model wrong.json", '"model_type" is missing'),
    ("plan serve list.json --rate 1", "list.json"),
    ("simulate train wrong.json --chips 8", '"model_type" is missing'),
    ("show model ./nope.json", "cannot be read: No such file"),
    ("show model /dev/null", "/dev/null is not a config.json"),
    ("show model /etc", "/etc is a folder without a config.json"),
    ("show model ./nope", "nope is not there"),
    ("show model folder", "folder is a folder without a config.json"),
    ("plan serve folder --rate 5", "folder is a folder without a config.json"),
    ("show model llama-3.1-8", "did you mean llama-3.1-8b?"),
    ("show model empty.csv", "empty.csv is not a config.json"),
    ("show fit ~/no/such/model", "no/such/model is not there"),
    ("simulate serve llama-3.1-8b --rate 5 -o x.pdf", "no format goes with .pdf"),
    ("simulate serve llama-3.1-8b --rate 5 -o x.pdf", ".htm, .perfetto-trace; or name the format"),
    ("simulate serve llama-3.1-8b --rate 5 -o .", ". could not be written: it is a folder"),
    ("simulate serve llama-3.1-8b --rate 5 -o nodir/x.html", "there is no folder nodir"),
    ("simulate serve llama-3.1-8b --rate 5 --json -o nodir/x", "mkdir -p nodir"),
    ("simulate serve llama-3.1-8b --rate 5 -o nodir/x.perfetto-trace", "there is no folder nodir"),
    ("simulate train llama-3.1-8b --chips 8 --format perfetto -o nodir/x", "there is no folder nodir"),
    ("plan train llama-3.1-8b --chips 8 -o words.sh/x.md", "words.sh is no folder"),
    ("plan serve llama-3.1-8b --rate 5 -o x.perfetto-trace", "no format goes with .perfetto-trace"),
    ("validate kernels -o nodir/x.csv", "there is no folder nodir"),
    ("catalog chips -o nodir/x.csv", "there is no folder nodir"),
    ("explain show chip h100-sxm -o x.pdf", "no format goes with .pdf"),
    ("plan serve llama-3.1-8b --rate 5 --isl 1M", "prompts of 1,000,000 tokens for a context of 131,072"),
    (
        "simulate serve llama-3.1-8b --rate 5 --isl 900 --system 200 --max-context 1k",
        "prompts of 1,100 tokens",
    ),
    ("show techniques llama-3.1-8b --rate 5 --isl 1M", "prompts of 1,000,000 tokens"),
    ("simulate serve llama-3.1-8b --rate 5 --system 200k", "prompts of 200,001 tokens and more"),
    ("simulate serve llama-3.1-8b --rate 5 --from-region mars", '"mars" is not a region'),
    ("simulate serve llama-3.1-8b --rate 5 --in-region mars", '"mars" is not a region'),
    ("simulate serve llama-3.1-8b --rate 5 --region name=eu", "--in-region: is missing beside regions"),
)
# refused by a room as well, of a file together with all that is wrong with it
WRONG += (
    (
        "plan serve llama-3.1-8b --chips a100,v100 --precision fp8 --rate 5",
        "NVIDIA V100 SXM2 32 GB has no FP8",
    ),
    ("plan serve llama-3.1-8b --rate 5 --on torus", "wired to their neighbours only"),
    ("show roofline a100 --model llama-3.1-8b --precision fp8", "NVIDIA A100 SXM 80 GB has no FP8"),
    ("show techniques llama-3.1-8b --chip a100 --precision fp8 --rate 5", "has no FP8"),
    ("show techniques llama-3.1-8b --rate 5 --on nvl72 --chip h100-sxm", "scale-up domains of 8, not 72"),
    ("simulate serve llama-3.1-8b --chip a100 --precision fp8 --rate 5", "has no FP8"),
    (
        "simulate serve llama-3.1-8b --disaggregated prefill=1xh200,decode=1xa100 --precision fp8 --rate 5",
        "has no FP8",
    ),
    (
        "simulate serve llama-3.1-8b --rate 5 --on dgx-superpod-h100 --precision nvfp4",
        "NVIDIA H100 SXM has no FP4",
    ),
    ("show collective all-reduce --chips 8", "how large is the array?"),
    (
        "show collective all-to-all --experts 64 --tokens 1k --topk 128 --hidden 4096",
        "--topk 128 of 64 experts",
    ),
    (
        "show collective all-to-all --experts 64 --chips 32 --tokens 1k --topk 2 --hidden 64",
        "64 experts on 32 chips",
    ),
    ("show collective all-reduce --on torus --sides 3x3 --chips 64 --size 1GB", "3x3 has 9 chips, not 64"),
    ("show collective all-reduce --on nvl72 --chip h100-sxm --chips 64 --size 1GB", "domains of 8, not 72"),
    ("show fabric fat-tree --chips 64 --radix 3", "a switch has an even number of ports, not 3"),
    ("show fabric fat-tree --chips 100000 --tiers 1", "100,000 chips do not fit 1 tier"),
    ("show fabric torus mesh --chips 64 --radix 8", "a torus has no radix to choose"),
    ("show fabric fat-tree --chips 64 --server dgx-h100 --chip b200", "has h100-sxm, not b200-sxm"),
    ("simulate fabric --on fat-tree --chips 64", "nothing is sent"),
    ("simulate fabric --on fat-tree --job ranks=64", "how many chips shall fat-tree join?"),
    ("simulate fabric --on fat-tree --chips 64 --job ranks=65", "ranks: endpoint 64 is not there"),
    ("simulate fabric --on fat-tree --chips 64 --radix 3 --job ranks=64", "an even number of ports, not 3"),
    ("simulate fabric --on fat-tree --chips 64 --job ranks=64 --stall chip=64", "chip 64 is not there"),
    (
        "simulate fabric --on fat-tree --chips 64 --background pattern=incast,target=64",
        "target: endpoint 64 is not there",
    ),
    (
        "simulate fabric --on fat-tree --chips 64 --job ranks=64 --check-with symmetric",
        "detail that is simulated",
    ),
)
NO = {"plan serve llama-3.1-8b --chips a100,v100 --precision fp8 --rate 5"}  # an answer, which is no
CODE = (
    "import sys; from datahall.cli.main import run; code = run(sys.argv[1:]);"
    f"print(code, [name for name in {HEAVY!r} if name in sys.modules])"
)


@pytest.mark.parametrize(("line", "words"), WRONG, ids=[line for line, _ in WRONG])
def test_it_is_refused_before_anything_heavy_is_loaded(line: str, words: str, tmp_path: Path) -> None:
    for name in ("folder", "llama-3.1-8"):
        (tmp_path / name).mkdir()
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", CODE, *line.split()], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert words in done.stderr
    assert done.stdout.endswith(f"{1 if line in NO else 2} []\n"), done.stdout
