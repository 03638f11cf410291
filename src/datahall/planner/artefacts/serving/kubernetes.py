"""A manifest for Kubernetes: as many pods as the plan has replicas, and one address for them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from datahall.catalog.entries.tool import Tool, tool
from datahall.errors import option
from datahall.planner.artefacts.options import Shell, UnknownOption, Value, checked, words_of
from datahall.planner.artefacts.refused import refuse
from datahall.planner.artefacts.script import Variable, head, to_fill
from datahall.planner.artefacts.serving import sglang, vllm
from datahall.planner.artefacts.serving.service import Service
from datahall.planner.artefacts.yaml import yaml

ROOTS = {"Deployment": "apps/v1", "Service": "v1"}
DEVICES = {
    "NVIDIA": "nvidia.com/gpu",
    "AMD": "amd.com/gpu",
}  # as the device plugins of their makers call them
ROOMS = {"vllm": vllm, "sglang": sglang}
PORT = 8000
SECRET = "hf-token"
IMAGE = Variable("IMAGE", about="image of the engine for these chips")


def kubernetes_manifest(service: Service) -> str:
    """A Deployment and a Service: the pods take their options from the same place as the launch command does."""
    known, replica = tool("kubernetes"), service.replica
    refuse(
        known,
        () if replica.engine.name in ROOMS else (f"the engine {replica.engine.title}",),
        option("engine", "vllm"),
    )
    wide = f"a replica of {replica.num_chips:,} chips on nodes of {service.num_node_chips:,}"
    refuse(
        known,
        () if service.num_beside else (wide,),
        "a pod stands on one node: a smaller group, or the launch command",
    )
    refuse(known, () if replica.chip.vendor in DEVICES else (f"chips of {replica.chip.vendor}",))
    refuse(
        known,
        ("adapters, whose places each pod must be told one by one",) if replica.adapters else (),
        "the launch command",
    )
    engine = tool(replica.engine.name)
    name = re.sub(r"[^a-z0-9-]+", "-", replica.model.name.lower()).strip("-")
    objects = [_deployment(service, name, engine), _service(name)]
    for one in objects:
        check_object(known, str(one["kind"]), one)
    said = [
        *ROOMS[replica.engine.name].variables(service),
        *([] if replica.chip.vendor == "NVIDIA" else [IMAGE]),
    ]
    notes = [*service.notes, *(to_fill(one) for one in said if not one.usual)]
    comments = head(
        service.origin,
        (known, engine),
        [*notes, f"a token for the hub is read from the secret {SECRET}, if there is one"],
    )
    return "\n".join([*comments, "---\n".join(map(yaml, objects))])


def _deployment(service: Service, name: str, engine: Tool) -> dict[str, Value]:
    replica = service.replica
    room = ROOMS[replica.engine.name]
    said = {one.name: one.filled for one in room.variables(service)}
    options = {**room.engine_options(service, engine), "--host": "0.0.0.0", "--port": PORT}
    model = said["MODEL"]
    first = (
        ["vllm", "serve", model]
        if room is vllm
        else ["python3", "-m", "sglang.launch_server", "--model-path", model]
    )
    container: dict[str, Value] = {
        "name": engine.name,
        "image": image_of(service, engine),
        "command": first,
        "args": _arguments(engine, options, said),
        "ports": [{"containerPort": PORT}],
        "env": [
            {
                "name": "HF_TOKEN",
                "valueFrom": {"secretKeyRef": {"name": SECRET, "key": "token", "optional": True}},
            }
        ],
        "resources": {"limits": {DEVICES[replica.chip.vendor]: replica.num_chips}},
        "readinessProbe": {"httpGet": {"path": "/health", "port": PORT}, "periodSeconds": 10},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    labels = {"app": name}
    pods: dict[str, Value] = {
        "metadata": {"labels": labels},
        "spec": {"containers": [container], "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]},
    }
    return {
        "apiVersion": ROOTS["Deployment"],
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": service.best.num_deployed,
            "selector": {"matchLabels": labels},
            "template": pods,
        },
    }


def image_of(service: Service, engine: Tool) -> str:
    """The image that its makers publish, which is built for chips of NVIDIA; for others it must be named."""
    if service.replica.chip.vendor == "NVIDIA":
        return f"{engine.image}:v{engine.release}"
    return IMAGE.filled


def _arguments(engine: Tool, options: Mapping[str, Value | None], said: Mapping[str, str]) -> list[str]:
    """The words of a command, each by itself; variables are written as they are to be set."""
    found: list[str] = []
    for name, value in options.items():
        if value is None:
            continue
        if isinstance(value, Shell):
            words_of(engine, {name: value})
            found += [name, said[value.strip('"$')]]
            continue
        (line,) = words_of(engine, {name: value})
        flag, _, rest = line.partition(" ")
        found += [flag, *([rest.strip("'")] if rest else [])]
    return found


def _service(name: str) -> dict[str, Value]:
    return {
        "apiVersion": ROOTS["Service"],
        "kind": "Service",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"selector": {"app": name}, "ports": [{"port": PORT, "targetPort": PORT}]},
    }


def check_object(known: Tool, kind: str, value: Value) -> None:
    """Look every key of an object up, and those that it must have."""
    assert isinstance(value, dict)
    for key, inner in value.items():
        declared = checked(known, f"{kind}.{key}", inner)
        for one in inner if isinstance(inner, list) else [inner]:
            if declared.of:
                check_object(known, declared.of, one)
    needed = [name for name, one in known.options.items() if name.startswith(f"{kind}.") and one.required]
    for name in needed:
        if name.partition(".")[2] not in value:
            raise UnknownOption(f"{known.title} {known.release} wants {name}")
