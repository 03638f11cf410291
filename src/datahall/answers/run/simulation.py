"""`simulate run`: a training run over weeks, failure by failure."""

from __future__ import annotations

from math import inf, isfinite

from datahall.answer import Answer, Cell
from datahall.answers.follow import follow, our_error
from datahall.answers.reliability.words import interruptions, rates_in_words
from datahall.answers.run.idle import idle_in_run
from datahall.answers.run.promise import Fixed, broken_in_words, fixed, nothing_left, result_name
from datahall.answers.run.simulation_tables import (
    LOSS_WORDS,
    cause_table,
    loss_table,
    plan_table,
    progress_chart,
    waterfall,
)
from datahall.answers.run.tolerance import tolerance_tables
from datahall.answers.run.words import (
    host_link_notes,
    how_often,
    idle_chip_notes,
    only_planned_notes,
    slow_storage_notes,
    tier_notes,
    tiers_in_words,
    unlike_closed_form,
)
from datahall.cluster.used import used_by_machine
from datahall.counted import counted
from datahall.planner.training.laid.job import laid_job
from datahall.planner.training.laid.remedy import remedy_of
from datahall.reliability.checkpoint.storage import storage_need
from datahall.reliability.figure import ettr_figure
from datahall.reliability.kept import closed_figure
from datahall.reliability.run import Run, length_of, run_of
from datahall.reliability.simulation.promise import Kept, kept_promises
from datahall.reliability.simulation.story import GIVEN_UP_AFTER, Story, story_of
from datahall.scenario.kinds import Plain, exact
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.failures import FailureRates
from datahall.scenario.sections.operations.run import Recovering, RunLength
from datahall.units import fmt


def simulate_run(scenario: Scenario) -> Answer:
    """Interruptions by cause, effective training time, where the hours went; the closed form beside it."""
    run, until_s, goal_s = _asked(scenario)
    asked = scenario.one(RunLength)
    story = story_of(
        run,
        until_s=until_s,
        goal_s=goal_s,
        num_runs=asked.runs,
        seed=scenario.root.seed,
        enough_fraction=scenario.one(FailureRates).enough_fraction,
    )
    kept = kept_promises(scenario, story)
    broken = [one for one in kept if not one.holds]
    remedy = remedy_of(scenario, story, broken[0]) if broken and not story.is_hopeless else None
    fix = fixed(remedy, story) if remedy is not None else None
    return Answer(
        kind="training run",
        inputs=_inputs(scenario, run),
        verdict="no" if _fails(story) or broken else "yes",
        headline=_headline(story, broken),
        binding=_binding(story, fix),
        results={**_results(story), **{result_name(one): one.share_fraction for one in kept}},
        tables=(
            loss_table(story),
            cause_table(story),
            plan_table(story),
            *tolerance_tables(scenario.one(Recovering), run),
        ),
        figure=ettr_figure(story.found, closed_figure(run, story.closed), story.ettr),
        charts=(*((waterfall(story),) if story.losses else ()), progress_chart(story)),
        notes=(
            *_notes(story, rates_in_words(run.process.preset, scenario.one(FailureRates))),
            *slow_storage_notes(storage_need(run, scenario)),
            *host_link_notes(run.job.cluster),
            *idle_in_run(scenario, story.run),
        ),
        next_commands=_next(scenario, story, fix),
    )


def prepare(scenario: Scenario) -> None:
    """Put the run together, without simulating it."""
    _asked(scenario)


def _asked(scenario: Scenario) -> tuple[Run, float, float]:
    run = run_of(scenario, laid_job(scenario))
    return run, *length_of(scenario, run)


def _inputs(scenario: Scenario, run: Run) -> dict[str, Cell]:
    found: dict[str, Cell] = {
        **run.job.used,
        **used_by_machine(scenario, run.job.cluster),
        "like": run.process.preset.name,
    }
    if isfinite(run.recovery.planned_every_s):
        found["planned_every_s"] = run.recovery.planned_every_s
        found["planned_s"] = run.recovery.planned_s
    return found


def _fails(story: Story) -> bool:
    """Whether it comes to an end at all, promised or not."""
    return story.is_hopeless or story.is_given_up


def _headline(story: Story, broken: list[Kept]) -> str:
    run, model = story.run, story.run.job.setup.job.model
    ettr, failures = story.ettr, story.failures
    what = f"{model.title or model.name} on {counted(run.job.num_chips, 'chip')}"
    if story.is_hopeless:
        times = interruptions(story.failures.mean)
        little = fmt(ettr.mean, "fraction", 2)
        return f"{what} comes to nothing: {little} of the time moves it forward, with {times}."
    share = (
        f"{fmt(ettr.mean, 'fraction', 3)} ({fmt(ettr.low, 'fraction', 3)} to {fmt(ettr.high, 'fraction', 3)})"
    )
    often = interruptions(story.failures.mean)
    times = f"{often} ({failures.low:,.0f} to {failures.high:,.0f})"
    if story.is_given_up:
        done = fmt(story.finished_fraction, "fraction", 3)
        return (
            f"{what} is given up too often: {done} of the runs are done after {fmt(story.most_s, 's', 3)}, where nine "
            f"of ten would do; {share} of the time moves it forward, with {times}."
        )
    if story.goal_s < inf:
        taken = story.elapsed_s
        days = f"{fmt(taken.mean, 's', 3)} ({fmt(taken.low, 's', 3)} to {fmt(taken.high, 's', 3)})"
        said = f"{what} takes {days}: {share} of the time moves it forward, with {times}"
    else:
        tokens = fmt(story.tokens.mean, "tokens", 3)
        said = (
            f"{what} trains {tokens} in {fmt(story.elapsed_s.mean, 's', 3)}: {share} of the time moves it forward, "
            f"with {times}"
        )
    return f"{said}. {broken_in_words(broken[0])}" if broken else f"{said}."


def _binding(story: Story, fix: Fixed | None) -> str:
    if _fails(story):
        return nothing_left(story)
    if fix is not None:
        return fix.words
    if not story.losses:
        return "Nothing is lost."
    first = story.losses[0]
    closed = (
        f"The closed form says {fmt(story.closed.ettr, 'fraction', 3)} (renewal), "
        f"{fmt(story.closed.wall_rate_ettr, 'fraction', 3)} by the wall rate."
    )
    return (
        f"Most is lost to {LOSS_WORDS[first.name]}: {fmt(first.share_fraction, 'fraction', 2)} of the time, "
        f"{fmt(first.time_s.mean, 's', 3)} of each run. {closed}"
    )


def _results(story: Story) -> dict[str, Cell]:
    run, ettr, failures = story.run, story.ettr, story.failures
    found: dict[str, Cell] = {
        "ettr_fraction": ettr.mean,
        "ettr_low_fraction": ettr.low,
        "ettr_high_fraction": ettr.high,
        "closed_form_fraction": story.closed.ettr,
        "wall_rate_fraction": story.closed.wall_rate_ettr,
        "difference_fraction": story.difference,
        "num_interruptions": failures.mean,
        "num_interruptions_low": failures.low,
        "num_interruptions_high": failures.high,
        "mttf_s": run.mttf_s,
        "elapsed_s": story.elapsed_s.mean,
        "elapsed_low_s": story.elapsed_s.low,
        "elapsed_high_s": story.elapsed_s.high,
        "trained_tokens": story.tokens.mean,
        "step_s": run.job.step_s,
        "slowed_step_s": run.step_s,
        "tokens_per_s": run.job.tokens_per_s,
        "mfu_fraction": run.job.mfu_fraction,
        "layout": run.job.layout.words,
        "num_chips": run.job.num_chips,
        "num_nodes": run.process.num_nodes,
        "num_spares": story.steady_spares.num,
        "num_away_high": story.away.high,
        "checkpoint_bytes": run.job.size.total_bytes,
        "restart_s": run.restart_s,
    }
    if story.goal_s < inf:
        found |= {"finished_fraction": story.finished_fraction, "given_up_s": story.most_s}
    for one in run.plan.cadences:
        found[f"{one.tier.name}_interval_s"] = one.interval_s
        found[f"{one.tier.name}_blocking_s"] = one.tier.blocking_s
    for loss in story.losses:
        found[loss.name] = loss.time_s.mean
    return found


def _notes(story: Story, rates: str) -> tuple[str, ...]:
    run = story.run
    low, high = run.job.band
    lines = [
        how_often(run, rates),
        f"checkpoints: {tiers_in_words(run.plan)}",
        f"a step takes {fmt(run.step_s, 's', 3)} ({run.job.layout.words}), {fmt(low, 'fraction', 2)} to "
        f"{fmt(high, 'fraction', 3)} of that for eight of ten measured ones; it scales the tokens, not the effective "
        "time",
        "ranges are P10 to P90 of the runs: chance alone, not what is unsure of the rates",
    ]
    if not story.ettr.low <= story.ettr.mean <= story.ettr.high:
        lines.append("the mean lies beyond P10 to P90: few of the runs lose the most")
    if run.slow_fraction:
        slow = fmt(run.slow_fraction, "fraction", 2)
        lines.append(
            f"slow hosts and jitter make a step {slow} longer, at most: all its work waits for the slowest"
        )
    if run.checks_fraction:
        checks = fmt(run.checks_fraction, "fraction", 2)
        lines.append(f"looking for silent corruption makes a step {checks} longer")
    lines += [*unlike_closed_form(story), *tier_notes(run), *only_planned_notes(run), *idle_chip_notes(run)]
    if story.finished_fraction < 1.0:
        lines.append(
            f"{fmt(story.finished_fraction, 'fraction', 3)} of the runs are done; the others were given up when "
            f"{GIVEN_UP_AFTER:g} times the time of their work had gone by, and count with what they had until then"
        )
    if (better := run.better) is not None:
        lines.append(
            f"{tiers_in_words(better)} would keep {fmt(better.ettr, 'fraction', 3)}, planned stops aside"
        )
    return tuple(lines)


def _of_checkpoints(run: Run) -> dict[str, Plain | None]:
    """The same failures for a question that has no time to age in, and spares only where they run already."""
    changes: dict[str, Plain | None] = {"tier": None, "interval": None}
    if not run.recovery.hot_spares:
        changes["spares"] = None
    if run.process.age_s is not None:
        changes["failure_rate"] = exact(run.failure_rate_per_node_day, "per_node_day")
    return changes


def _next(scenario: Scenario, story: Story, fix: Fixed | None) -> tuple[str, ...]:
    better, commands = story.run.better, []
    if fix is not None and fix.changes:
        commands.append(follow(scenario, changes=fix.changes))
    if better is not None:
        changes: dict[str, Plain | None] = {"tier": list(better.names), "interval": None, "blocking": None}
        commands.append(follow(scenario, changes=changes))
    commands.append(follow(scenario, "show checkpoint", _of_checkpoints(story.run)))
    return (*commands, follow(scenario, tail="-o run.html"), our_error(scenario, "reliability"))
