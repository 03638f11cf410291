"""Which files can be had of a plan: by the name of the file, whose ending is that of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

# a plan of a service, and a plan of a training run: the module and its function, loaded when it is asked for
OF_SERVICE: Mapping[str, str] = MappingProxyType({
    "vllm.sh": "planner.artefacts.serving.vllm:vllm_script",
    "sglang.sh": "planner.artefacts.serving.sglang:sglang_script",
    "trtllm.yaml": "planner.artefacts.serving.trtllm:trtllm_config",
    "kubernetes.yaml": "planner.artefacts.serving.kubernetes:kubernetes_manifest",
    "ray-serve.yaml": "planner.artefacts.serving.ray_serve:ray_serve_config",
})  # fmt: skip
OF_RUN: Mapping[str, str] = MappingProxyType({
    "megatron.sh": "planner.artefacts.training.megatron:megatron_script",
    "torchtitan.toml": "planner.artefacts.training.torchtitan:torchtitan_job",
    "deepspeed.json": "planner.artefacts.training.deepspeed:deepspeed_config",
    "slurm.sh": "planner.artefacts.training.slurm:slurm_script",
})  # fmt: skip


def writer(place: str) -> Callable[..., str]:
    """The function of a row."""
    module, _, name = place.partition(":")
    found: Callable[..., str] = getattr(import_module(f"datahall.{module}"), name)
    return found
