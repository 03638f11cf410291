"""Which files can be had of a plan: by the name of the file, whose ending is that of its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

# a plan of a service, and a plan of a training run: the module and its function, loaded when it is asked for
OF_SERVICE: Mapping[str, str] = MappingProxyType({
    "vllm.sh": "serving.vllm:vllm_script",
    "sglang.sh": "serving.sglang:sglang_script",
    "kubernetes.yaml": "serving.kubernetes:kubernetes_manifest",
    "ray-serve.yaml": "serving.ray_serve:ray_serve_config",
})  # fmt: skip
OF_RUN: Mapping[str, str] = MappingProxyType({
    "megatron.sh": "training.megatron:megatron_script",
    "torchtitan.toml": "training.torchtitan:torchtitan_job",
    "deepspeed.json": "training.deepspeed:deepspeed_config",
    "slurm.sh": "training.slurm:slurm_script",
})  # fmt: skip


def writer(place: str) -> Callable[..., str]:
    """The function of a row."""
    module, _, name = place.partition(":")
    found: Callable[..., str] = getattr(import_module(f"datahall.planner.artefacts.{module}"), name)
    return found
