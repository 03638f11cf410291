"""What follows a plan of a training run: its layout looked at and simulated, its run, its power, and other plans."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from datahall.answers.follow import Tables, follow, kept_of
from datahall.answers.training.artefact import deploy_run
from datahall.cluster.gone import besides
from datahall.fabric.flows.failures import part_there
from datahall.planner.plan import FEWEST_CHIPS
from datahall.planner.training.plan import TrainingPlan
from datahall.power.sections.run import RunPower
from datahall.reliability.sections.goodput import Goodput
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.scenario.sections.failure import Failure
from datahall.training.layout.asked import layout_inputs, said_precision, usual_batch
from datahall.training.layout.layout import Layout


def _failures_there(scenario: Scenario, plan: TrainingPlan) -> Tables:
    """What has failed of the chips that take part: the machine of the plan may have fewer than there are."""
    if plan.cluster.design is None:
        return {}
    fabric = plan.cluster.design.fabric
    left = [besides(one) for one in scenario.all(Failure)]
    return kept_of(scenario, "failure", [one and part_there(fabric, one) for one in left])


def _tapered(scenario: Scenario, plan: TrainingPlan) -> dict[str, Plain | None]:
    """The ratios of the tiers that the plan's chips need; a machine of one tier has none to say."""
    ratios = scenario.one(FabricDesign).oversubscription
    left = plan.cluster.ratios_there(ratios)
    if left == ratios:
        return {}
    return {"oversubscription": scenario.form.fields["oversubscription"].kind.write(left) if left else None}


def _said_by_file(scenario: Scenario, plan: TrainingPlan) -> dict[str, Plain | None]:
    """What a layout file says of the job, for a question without the file: its layout is not the chosen one."""
    if plan.present is None:
        return {}
    job = plan.job
    return {
        "layout": None,
        "seq": job.seq,
        "global_batch": job.global_batch,
        "precision": said_precision(scenario),
    }


def _batch_said(plan: TrainingPlan, num_chips: int, layout: Layout | None = None) -> dict[str, Plain | None]:
    """The global batch for a question that would take another: of a plan on other chips, or with others left idle."""
    usual = usual_batch(num_chips, layout, tunes=plan.job.adapters is not None) == plan.job.global_batch
    return {} if usual else {"global_batch": plan.job.global_batch}


def _mended(scenario: Scenario, plan: TrainingPlan) -> tuple[str, ...]:
    """The same plan with what ends its run, where it never does."""
    if plan.mended is None:
        return ()
    name, text = plan.mended
    beside: dict[str, Plain | None] = {
        one: None for one, field in scenario.form.fields.items() if name in field.kind.against
    }
    return (follow(scenario, changes={**beside, name: text}),)


def _aimed(plan: TrainingPlan) -> dict[str, Plain | None]:
    """On so many chips their number is no objective."""
    return {"objective": None} if plan.objective == FEWEST_CHIPS else {}


def _paid(scenario: Scenario, plan: TrainingPlan) -> tuple[str, ...]:
    """The same question with what is enough, where the budget is not."""
    if plan.over is None or not plan.over.fixes:
        return ()
    fix = plan.over.fixes[0]
    return (follow(scenario, changes={fix.name: fix.text}),)


def _taken_away(scenario: Scenario, plan: TrainingPlan) -> dict[str, Plain | None]:
    """How often nodes are taken away, of a run that is on spot alone; of one that is on other capacity never."""
    every_s = plan.part(Goodput).run.recovery.preempted_every_s
    if every_s == inf:
        return dict.fromkeys(("preempted_every", "capacity_back", "notice"))
    if scenario.given("preempted_every"):
        return {}
    return {"preempted_every": scenario.form.fields["preempted_every"].kind.write(every_s)}


def _power(scenario: Scenario, plan: TrainingPlan, laid_out: Mapping[str, Plain | None]) -> tuple[str, ...]:
    """The site of the plan: of its layout, or where chips stay idle of the same search over all of them.

    What is searched over a machine with failures, or with state off the chips, is asked of a plan alone.
    """
    if not plan.num_idle:
        return (follow(scenario, "show power", laid_out, tables=_failures_there(scenario, plan)),)
    if plan.num_out or scenario.given("offload") or scenario.given("layout"):
        return ()
    changes: dict[str, Plain | None] = {"chips": plan.num_asked, "global_batch": plan.job.global_batch}
    return (follow(scenario, "show power", changes),)


def next_of_plan(scenario: Scenario, plan: TrainingPlan) -> tuple[str, ...]:
    """The chosen layout, its run and its power; the run on twice the chips, where that was seen to work."""
    tapered, failed = _tapered(scenario, plan), _failures_there(scenario, plan)
    of_file = _said_by_file(scenario, plan)
    batch = _batch_said(plan, plan.num_chips, plan.layout)
    laid_out = {
        "offload": None, **layout_inputs(plan.layout), "chips": plan.num_chips, **batch, **tapered, **of_file,
    }  # fmt: skip
    taken = _taken_away(scenario, plan)
    tiers: dict[str, Plain | None] = {"tier": list(plan.part(Goodput).run.plan.names)}
    commands = [
        *_mended(scenario, plan),
        *_paid(scenario, plan),
        follow(scenario, "show memory", laid_out, tables=failed),
        follow(scenario, "simulate train", laid_out, tables=failed),
    ]
    if not plan.ends:
        return tuple(commands)
    commands += [
        *deploy_run(scenario, plan),
        follow(scenario, "simulate run", {**laid_out, **taken}, tables=failed),
        follow(scenario, "show checkpoint", {**laid_out, **taken, **tiers}, tables=failed),
    ]
    if plan.section(RunPower) is not None:
        commands += _power(scenario, plan, laid_out)
    if plan.twice_the_chips is not None:
        chips = plan.twice_the_chips.num_chips
        changes = {"chips": chips, "budget": None, **_batch_said(plan, chips), **of_file}
        commands.append(follow(scenario, "plan train", changes))
    elif plan.deadline_s is not None and not plan.hurried:
        said = _batch_said(plan, plan.num_chips)
        changes = {"chips": plan.num_chips, "deadline": None, **_aimed(plan), **said, **tapered}
        commands.append(follow(scenario, "plan train", changes))
    return tuple(commands)
