"""Read the options of tools from their own parsers into `catalog/data/tools/`, where artefacts of a plan look them up.

    python calibration/parsers/read.py TOOL RELEASE DATE FOLDER

TOOL is a row of `READERS`; FOLDER has its sources unpacked (`pip download --no-deps`, then unzip; or a checkout at the
tag of the release; of Slurm the page doc/man/man1/sbatch.1), DATE is the month of the release.  Nothing of the tool is
run, and no help text is kept: names, types, words and defaults alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from engines import sglang, trtllm, vllm
from option import write
from systems import kubernetes, ray, slurm, torchrun
from trainers import deepspeed, megatron, torchtitan


class Reader(NamedTuple):
    title: str
    parser: str  # where the options stand in a release
    read: Callable[[Path], Any]
    image: str = ""  # of a container, as its makers' page on Docker has it


READERS = {
    "vllm": Reader(
        "vLLM",
        "vllm/engine/arg_utils.py, vllm/config and vllm/entrypoints of the wheel; image: docs.vllm.ai, Using Docker",
        vllm,
        "vllm/vllm-openai",
    ),
    "sglang": Reader(
        "SGLang",
        "sglang/srt/arg_groups/fields of the wheel; image: docs.sglang.ai, Install, Docker",
        sglang,
        "lmsysorg/sglang",
    ),
    "trtllm": Reader(
        "TensorRT-LLM",
        "tensorrt_llm/llmapi/llm_args.py, tensorrt_llm/lora_helper.py and tensorrt_llm/commands/serve.py at the tag",
        trtllm,
    ),
    "megatron": Reader(
        "Megatron-LM", "megatron/training/arguments.py and the classes it reads, at the tag", megatron
    ),
    "torchtitan": Reader(
        "torchtitan", "torchtitan/config/job_config.py and torchtitan/models of the wheel", torchtitan
    ),
    "deepspeed": Reader("DeepSpeed", "deepspeed/runtime of the source distribution", deepspeed),
    "torchrun": Reader("torchrun of PyTorch", "torch/distributed/run.py of the wheel", torchrun),
    "slurm": Reader("Slurm", "manual page sbatch(1) at the tag", slurm),
    "ray": Reader("Ray", "ray/serve/schema.py and ray/llm of the wheel", ray),
    "kubernetes": Reader("Kubernetes", "JSON schema of the API", kubernetes),
}


def main() -> None:
    try:
        name, release, date, folder = sys.argv[1:]
        reader = READERS[name]
    except (ValueError, KeyError):
        raise SystemExit(f"{__doc__}\nTOOL: {', '.join(READERS)}") from None
    found = reader.read(Path(folder))
    options, more = found if isinstance(found, tuple) else (found, {})
    write(
        name, reader.title, release, f"{reader.title} {release}: {reader.parser}", date, options,
        **({"image": reader.image} if reader.image else {}), **({"models": more} if more else {}),
    )  # fmt: skip


if __name__ == "__main__":
    main()
