"""Each file is read by the tool that it is for, where that is installed, of the release whose facts stand here.

PyYAML alone is always there: the other tools, and the schemas of Kubernetes, take 100 MB and more.
"""

from __future__ import annotations

import json
import shlex
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.planner.artefacts.conftest import DENSE, SERVE, SMALL, TRAIN, TRAINED, asked

from datahall.catalog.entries.tool import tool

YAML: Any = import_module("yaml")
TUNED = SMALL | {
    "draft": "ngram", "adapters": "20", "resident_adapters": "8", "max_context": "16000", "prefix_caching": "false"
}  # fmt: skip


VALUES = {
    '"$((PORT + slot))"': "8000", '"$PORT"': "8000", "$ADAPTERS": "a=/a", '"$MODEL"': "m", '"$LR"': "3e-4",
    '"$NODE_RANK"': "3", '"$MASTER_PORT"': "29500", '"$TOKENIZER"': "t",
    '"$(seq -s, "$first" "$((first + CHIPS - 1))")"': "0,1,2,3",
}  # fmt: skip


def installed(name: str, fact: str) -> ModuleType:
    """The tool, of the release of our facts."""
    found = pytest.importorskip(name, exc_type=ImportError)
    release = tool(fact).release
    version = getattr(found, "__version__", release)
    if not version.startswith(release):
        pytest.skip(f"{name} {version} is not {release}")
    return found


def words_of(text: str) -> list[str]:
    """The words of the long command of a script, with values in place of its variables."""
    line = max(text.replace("\\\n", " ").splitlines(), key=len).removesuffix("&")
    for name, value in VALUES.items():
        line = line.replace(name, value)
    return shlex.split(line)


@pytest.mark.parametrize("given", [DENSE, SMALL, TUNED], ids=["dense", "small", "tuned"])
def test_vllm_reads_its_command(given: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["vllm", "serve"])
    installed("vllm", "vllm")
    import vllm.platforms  # type: ignore[import-not-found]
    from vllm.platforms.cpu import CpuPlatform  # type: ignore[import-not-found]

    monkeypatch.setattr(vllm.platforms, "_current_platform", CpuPlatform())
    from vllm.engine.arg_utils import AsyncEngineArgs  # type: ignore[import-not-found]
    from vllm.entrypoints.common.cli_args import FrontendArgs  # type: ignore[import-not-found]
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # type: ignore[import-not-found]

    parser = AsyncEngineArgs.add_cli_args(FrontendArgs.add_cli_args(FlexibleArgumentParser()))
    made = asked(SERVE, given)
    words = words_of(made.file("vllm.sh"))
    found = parser.parse_args(words[words.index("m") + 1 :])
    assert found.tensor_parallel_size == made.answer.results["tp"]
    assert found.max_num_batched_tokens == 8192
    if given is TUNED:
        assert found.max_model_len == 16000
        assert found.enable_prefix_caching is False
        assert found.speculative_config == {"method": "ngram", "num_speculative_tokens": 3}
        assert [one.name for one in found.lora_modules] == ["a"]


@pytest.mark.parametrize("given", [SMALL, TUNED], ids=["small", "tuned"])
def test_sglang_reads_its_command(given: dict[str, str]) -> None:
    installed("sglang", "sglang")
    from argparse import ArgumentParser

    from sglang.srt.server_args import ServerArgs  # type: ignore[import-not-found]

    parser = ArgumentParser()
    ServerArgs.add_cli_args(parser)
    made = asked(SERVE, given | {"engine": "sglang"})
    words = words_of(made.file("sglang.sh"))
    found = parser.parse_args(words[words.index("--model-path") :])
    assert found.tp_size == made.answer.results["tp"]
    assert found.port == 8000


def test_torchtitan_reads_its_job(tmp_path: Path) -> None:
    pytest.importorskip("torchtitan.config.job_config", exc_type=ImportError)
    from torchtitan.config.manager import ConfigManager  # type: ignore[import-not-found]

    path = tmp_path / "job.toml"
    made = asked(TRAIN, TRAINED)
    path.write_text(made.file("torchtitan.toml"))
    found = ConfigManager().parse_args(["--job.config_file", str(path)])
    assert found.training.steps == made.answer.results["num_steps"]
    assert found.parallelism.data_parallel_shard_degree == made.answer.results["dp"]


def test_deepspeed_reads_its_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed("deepspeed", "deepspeed")
    from deepspeed.runtime.config import DeepSpeedConfig  # type: ignore[import-not-found]

    monkeypatch.setattr("deepspeed.comm.get_rank", lambda: 0)
    monkeypatch.setattr("deepspeed.comm.get_world_size", lambda: 64)  # as many as the plan has
    path = tmp_path / "ds.json"
    made = asked(TRAIN, TRAINED)
    path.write_text(made.file("deepspeed.json"))
    found = DeepSpeedConfig(str(path))
    assert found.train_batch_size == 1024
    assert found.zero_optimization_stage == made.answer.results["zero"]
    assert found.bfloat16_config.enabled


@pytest.mark.parametrize("name", ["megatron.sh", "slurm.sh"])
def test_torchrun_reads_its_command(name: str) -> None:
    installed("torch", "torchrun")
    from torch.distributed.run import parse_args  # type: ignore[import-not-found]

    words = words_of(asked(TRAIN, TRAINED).file(name))
    found = parse_args(words[words.index("torchrun") + 1 :])
    assert found.nproc_per_node == "8"
    assert found.training_script.endswith("pretrain_gpt.py")


@pytest.mark.parametrize("given", [DENSE, SMALL | {"engine": "sglang"}], ids=["vllm", "sglang"])
def test_yaml_reads_the_manifest(given: dict[str, str]) -> None:
    made = asked(SERVE, given)
    served, service = YAML.safe_load_all(made.file("kubernetes.yaml"))
    assert (served["kind"], service["kind"]) == ("Deployment", "Service")
    pod = served["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert served["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert served["spec"]["replicas"] == made.answer.results["num_replicas"]
    (container,) = pod["spec"]["containers"]
    assert int(container["resources"]["limits"]["nvidia.com/gpu"]) == made.answer.results["tp"]
    ports = {port["containerPort"] for port in container["ports"]} | {
        port.get("name") for port in container["ports"]
    }
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


def test_yaml_reads_the_application_of_ray() -> None:
    made = asked(SERVE, DENSE)
    (application,) = YAML.safe_load(made.file("ray-serve.yaml"))["applications"]
    (inner,) = application["args"]["llm_configs"]
    assert inner["deployment_config"]["num_replicas"] == made.answer.results["num_replicas"]
    assert inner["engine_kwargs"]["tensor_parallel_size"] == made.answer.results["tp"]


@pytest.mark.parametrize("given", [DENSE, SMALL | {"engine": "sglang"}], ids=["vllm", "sglang"])
def test_kubernetes_schema_holds_the_manifest(given: dict[str, str]) -> None:
    validate = pytest.importorskip("kubernetes_validate")
    documents = list(YAML.safe_load_all(asked(SERVE, given).file("kubernetes.yaml")))
    assert [one["kind"] for one in documents] == ["Deployment", "Service"]
    for one in documents:
        validate.validate(one, tool("kubernetes").release.rpartition(".")[0], strict=True)


def test_ray_reads_its_application() -> None:
    installed("ray", "ray")
    from ray.serve.schema import ServeDeploySchema  # type: ignore[import-not-found]

    made = asked(SERVE, DENSE)
    found = ServeDeploySchema(**YAML.safe_load(made.file("ray-serve.yaml")))
    (inner,) = found.applications[0].args["llm_configs"]
    assert inner["deployment_config"]["num_replicas"] == made.answer.results["num_replicas"]
    assert json.loads(json.dumps(inner["engine_kwargs"]))["tensor_parallel_size"] == made.answer.results["tp"]
