"""Options of what starts and keeps programs: Slurm's sbatch, torchrun, Ray Serve's configuration, Kubernetes' objects."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from option import of_argparse
from syntax import Sources, keys, option

Options = dict[str, dict[str, Any]]
HEAD = re.compile(r"\.TP\n((?:\\fB.*\n)+)")
LONG = re.compile(r"\\fB(--[a-z][\w-]*)\\fR(=|\[=)?")


def slurm(page: Path) -> Options:
    """`sbatch`, from its manual page: long options, and whether they take a value."""
    text = page.read_text().replace("\\-", "-")
    found: Options = {}
    for block in HEAD.findall(text):
        for name, valued in LONG.findall(block.splitlines()[0]):
            short = re.findall(r"\\fB(-\w)\\fR", block.splitlines()[0])
            kind = {"": "flag", "=": "text", "[=": "optional"}[valued]
            found[name] = option(kind, [], None, short)
    return found


def torchrun(root: Path) -> Options:
    """`torchrun`: the parser in torch/distributed/run.py, whose words are spelled with hyphens or underscores."""
    sources = Sources(root, ("torch/distributed/run.py",))
    return dict(
        one for call in sources.calls("add_argument") if (one := of_argparse(call, sources)) is not None
    )


def ray(root: Path) -> Options:
    """The file of `serve deploy`, and within the arguments of an application of LLMs those of one of them."""
    sources = Sources(root, ("ray/serve/schema.py", "ray/serve/config.py", "ray/serve/autoscaling_policy.py"))
    llm = Sources(
        root,
        (
            "ray/llm/_internal/serve/core/configs/llm_config.py",
            "ray/llm/_internal/serve/core/ingress/builder.py",
        ),
    )
    accelerators = Sources(root, ("ray/util/accelerators/accelerators.py",))
    found = keys("ServeDeploySchema", "", sources, 1)
    found |= keys("ServeApplicationSchema", "applications.", sources, 0)
    found |= keys("LLMServingArgs", "applications.args.", llm, 0)
    found |= keys("LLMConfig", "applications.args.llm_configs.", llm, 1)
    found |= keys("ModelLoadingConfig", "applications.args.llm_configs.model_loading_config.", llm, 0)
    found |= keys("DeploymentSchema", "applications.args.llm_configs.deployment_config.", sources, 0)
    names = [
        value for value in map(accelerators.value, accelerators.names.values()) if isinstance(value, str)
    ]
    found["applications.args.llm_configs.accelerator_type"] = option("text", names, None)
    return found


USED = (
    "Deployment", "DeploymentSpec", "StatefulSet", "StatefulSetSpec", "Service", "ServiceSpec", "ServicePort", "ObjectMeta",
    "LabelSelector", "PodTemplateSpec", "PodSpec", "Container", "ContainerPort", "EnvVar", "EnvVarSource", "SecretKeySelector",
    "ObjectFieldSelector", "ResourceRequirements", "VolumeMount", "Volume", "EmptyDirVolumeSource", "Probe", "HTTPGetAction",
)  # fmt: skip


def kubernetes(folder: Path) -> Options:
    """Objects of the API, from its JSON schema: of those that a manifest of a service is made of, each key and its type."""
    schema = json.loads((folder / "_definitions.json").read_text())
    schema = schema.get("$defs", schema)
    found: Options = {}
    for full, one in schema.items():
        name = full.rpartition(".")[2]
        if name not in USED or ".v1." not in full or "properties" not in one:
            continue
        for key, value in one["properties"].items():
            inner = value.get("items", value).get("$ref", "").rpartition(".")[2]
            kind = _json_type(value)
            found[f"{name}.{key}"] = option(kind, value.get("enum") or [], None)
            if inner in USED:
                found[f"{name}.{key}"]["of"] = inner
            if key in one.get("required", []):
                found[f"{name}.{key}"]["required"] = True
    return found


def _json_type(value: dict[str, Any]) -> str:
    if value.get("$ref", "").endswith(".IntOrString"):
        return "any"
    kinds = value.get("type", "object")
    kind = next((one for one in kinds if one != "null"), "object") if isinstance(kinds, list) else kinds
    return {
        "integer": "int",
        "number": "float",
        "string": "text",
        "boolean": "flag",
        "array": "list",
        "object": "json",
    }[kind]
