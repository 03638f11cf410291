"""The file of `serve deploy`: an application of Ray Serve with vLLM behind it."""

from __future__ import annotations

from datahall.catalog.entries.tool import Tool, tool
from datahall.planner.artefacts.options import Shell, UnknownOption, Value, checked, words_of
from datahall.planner.artefacts.refused import refuse
from datahall.planner.artefacts.script import Variable, head, to_fill
from datahall.planner.artefacts.serving import vllm
from datahall.planner.artefacts.serving.service import Service
from datahall.planner.artefacts.yaml import yaml

BUILDER = "ray.serve.llm:build_openai_app"
INNER = "applications.args.llm_configs"
BESIDE = {"AMD", "INSTINCT", "INTEL", "GPU", "OAM", "HF"}  # makers and boards in a name of Ray
ACCELERATOR = f"{INNER}.accelerator_type"
ADAPTERS = Variable("ADAPTERS", about="where adapters lie, each in a folder of its name")


def ray_serve_config(service: Service) -> str:
    """One application, with as many replicas as the plan has; its engine is told what the launch command tells it."""
    known, engine, replica = tool("ray"), tool("vllm"), service.replica
    apart = (f"{replica.dp:,} ranks that attend by themselves",) if replica.dp > 1 else ()
    refuse(known, apart, "the launch command of vLLM")
    accelerator = _accelerator(known, replica.chip.name)
    application: dict[str, Value] = {
        "name": replica.model.name,
        "import_path": BUILDER,
        "route_prefix": "/",
        "args": {"llm_configs": [_llm(service, engine, accelerator)]},
    }
    whole: dict[str, Value] = {"applications": [application]}
    check_application(known, whole)
    notes = [*service.notes, *(to_fill(one) for one in _variables(service) if not one.usual)]
    if not accelerator:
        notes.append(f"Ray has no name for {replica.chip.name}: replicas ask for GPUs, whichever they are")
    return "\n".join([*head(service.origin, (known, engine), notes), yaml(whole)])


def _llm(service: Service, engine: Tool, accelerator: str) -> dict[str, Value]:
    """The model: where it lies, what runs it, and how many times."""
    replica = service.replica
    options = {
        name: value for name, value in vllm.engine_options(service, engine).items() if value is not None
    }
    words_of(engine, options)
    adapters = options.pop("--lora-modules", None)
    said = {one.name: one.filled for one in _variables(service)}
    return {
        "model_loading_config": {"model_id": replica.model.name, "model_source": said["MODEL"]},
        **({"accelerator_type": accelerator} if accelerator else {}),
        "deployment_config": {"num_replicas": service.best.num_deployed},
        "engine_kwargs": {_keyword(name): _said(value, said) for name, value in options.items()},
        **({"lora_config": {"dynamic_lora_loading_path": ADAPTERS.filled}} if adapters else {}),
    }


def _variables(service: Service) -> list[Variable]:
    """Those of the launch command, but of adapters the folder that Ray looks for them in."""
    return [ADAPTERS if one.name == ADAPTERS.name else one for one in vllm.variables(service)]


def _accelerator(known: Tool, chip: str) -> str:
    """A chip as Ray calls it: all of that name but makers and boards stands in ours; "" where it has no word for it.

    >>> [_accelerator(tool("ray"), chip) for chip in ("h100-sxm", "mi300x", "tpu-v6e", "rtx-5090", "npu-1")]
    ['H100', 'AMD-Instinct-MI300X-OAM', 'TPU-V6E', '', '']
    """
    ours = {*chip.upper().split("-")}
    names = [str(name) for name in known.options[ACCELERATOR].choices]
    named = [(name, {*name.upper().split("-")} - BESIDE) for name in names]
    return next((name for name, pieces in named if pieces and pieces <= ours), "")


def _keyword(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _said(value: Value, said: dict[str, str]) -> Value:
    return said[value.strip('"$')] if isinstance(value, Shell) else value


def check_application(known: Tool, whole: dict[str, Value]) -> None:
    """Look every key up: of the file, of an application, and of each of its models."""
    _check(known, "", whole)


def _check(known: Tool, before: str, value: object) -> None:
    assert isinstance(value, dict)
    for key, inner in value.items():
        name = f"{before}{key}"
        is_table = any(one.startswith(f"{name}.") for one in known.options)
        if name in known.options:
            checked(known, name, inner)
        elif not is_table:
            raise UnknownOption(f"{known.title} {known.release} has no {name}")
        if is_table:
            for one in inner if isinstance(inner, list) else [inner]:
                _check(known, f"{name}.", one)
