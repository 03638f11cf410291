"""`simulate cluster`: a queue of jobs on one cluster, policies side by side."""

from __future__ import annotations

from functools import partial

from datahall.answer import Answer, Cell, keyed
from datahall.answers.follow import explained, follow, our_error
from datahall.answers.reply import Traced
from datahall.answers.scheduling.cluster_tables import (
    charts,
    job_table,
    left_out_table,
    policy_table,
    user_table,
    waste_table,
)
from datahall.answers.scheduling.idle import idle_in_queue
from datahall.counted import counted, with_article
from datahall.scenario.scenario import Scenario
from datahall.scenario.words import QUEUE_POLICIES
from datahall.scheduling.asked import question_of
from datahall.scheduling.comparison import Comparison, compare
from datahall.scheduling.curves import trace_of
from datahall.scheduling.files.queue_file import QueueFile
from datahall.scheduling.metrics import Metrics, useful_figure
from datahall.scheduling.policies import RULES
from datahall.units import fmt

LITTLE = 0.005  # a share that is not worth a sentence
MUCH = 0.1  # one that binds more than that jobs wait


def simulate_cluster(scenario: Scenario) -> Traced:
    """Play the queue under each policy, and say which serves it best."""
    found = compare(question_of(scenario))
    return Traced(_answer(scenario, found), partial(trace_of, found.runs[found.best]))


def prepare(scenario: Scenario) -> None:
    """Read the jobs and make the cluster, without playing anything."""
    question_of(scenario)


def _answer(scenario: Scenario, found: Comparison) -> Answer:
    best = found.metrics[found.best]
    return Answer(
        kind="queue of a cluster",
        inputs={"chips": found.question.machine.num_chips},
        headline=_headline(found),
        binding=_binding(found),
        verdict="yes" if best.num_done == best.num_jobs else "no",
        results=_results(found),
        tables=(
            policy_table(found),
            waste_table(found),
            *user_table(found),
            *job_table(found),
            *left_out_table(found),
        ),
        figure=useful_figure(found.runs[found.best]),
        charts=charts(found),
        notes=_notes(scenario, found),
        next_commands=_next(scenario, found),
    )


def _headline(found: Comparison) -> str:
    best, run = found.metrics[found.best], found.runs[found.best]
    on = f"{found.question.machine.num_chips:,} chips"
    if best.num_done < best.num_jobs:
        return f"No: under {run.policy} {_unfinished(found)}."
    wait = "waits" if best.num_jobs == 1 else "wait"
    waits = f"{counted(best.num_jobs, 'job')} on {on} {wait} {fmt(best.mean_wait_s, 's', 3)} on average"
    used = (
        f"{fmt(best.utilisation_fraction, 'fraction')} of the chips' time is held, and all is done after "
        f"{fmt(best.makespan_s, 's', 3)}"
    )
    if len(found.runs) == 1:
        return f"Under {run.policy} {waits}; {used}."
    alike = found.as_good
    if len(alike) == len(found.runs):
        all_of = "Both" if len(found.runs) == 2 else f"All {len(found.runs)}"
        return f"{all_of} policies are alike: {waits}; {used}."
    names = " and ".join((", ".join(alike[:-1]), alike[-1])) if len(alike) > 1 else alike[0]
    worst, other = found.metrics[found.worst], found.runs[found.worst].policy
    ahead = f"{names} {'are' if len(alike) > 1 else 'is'} best"
    return f"{ahead}: {waits} (under {other} {fmt(worst.mean_wait_s, 's', 3)}); {used}."


def _unfinished(found: Comparison) -> str:
    """Why jobs do not come to their end."""
    never, cut_off = found.num_never_done, found.metrics[found.best].num_cut_off
    of = f"of {counted(found.question.jobs.num, 'job')} on {found.question.machine.num_chips:,} chips"
    words = []
    if cut_off:
        words.append(
            f"{cut_off:,} {of} {'is' if cut_off == 1 else 'are'} cut off by a limit that is too short"
        )
    if never:
        words.append(
            f"{never:,} {'' if words else f'{of} '}never {'ends' if never == 1 else 'end'}: too few nodes are left, or "
            "work is lost faster than it is done"
        )
    return "; ".join(words)


def _binding(found: Comparison) -> str:
    run, best = found.runs[found.best], found.metrics[found.best]
    jobs, job = found.question.jobs, found.longest_cut_off
    if job is not None:
        return (
            f'Limits bind: "{jobs.names[job]}" has {fmt(float(jobs.run_s[job]), "s", 3)} of work and a limit of '
            f"{fmt(float(jobs.limit_s[job]), 's', 3)}; what it did since its last checkpoint is lost."
        )
    if best.failed_fraction > (LITTLE if best.mean_wait_s == 0.0 else MUCH):
        return (
            f"Failures bind: {fmt(best.failed_fraction, 'fraction')} of the time that jobs held is lost to them and to "
            f"beginning again{_no_checkpoints(found)}."
        )
    if best.mean_wait_s == 0.0:
        return "Nothing binds: every job starts when it is submitted."
    if best.blocked_fraction > LITTLE:
        return (
            f"{fmt(best.blocked_fraction, 'fraction')} of the chips' time is idle under {run.policy} while a job waits "
            "that would fit in number: order and placement bind."
        )
    return "Chips bind: hardly any is idle while a job waits that would fit in number."


def _no_checkpoints(found: Comparison) -> str:
    return "; no job keeps checkpoints" if found.question.jobs.keeps_nothing else ""


def _results(found: Comparison) -> dict[str, Cell]:
    results: dict[str, Cell] = {
        "best_policy": found.runs[found.best].policy,
        "num_jobs": found.question.jobs.num,
        "num_done": found.metrics[found.best].num_done,
        "num_never_done": found.num_never_done,
        "num_cut_off": found.metrics[found.best].num_cut_off,
        "num_chips": found.question.machine.num_chips,
        "num_policies": len(found.runs),
        "load_fraction": found.load_fraction,
    }
    results |= _of_policy("", found.metrics[found.best])
    for run, one in zip(found.runs, found.metrics, strict=True):
        results |= _of_policy(f"{keyed(run.policy)}_", one)
    if found.measured_wait_s is not None:
        results["measured_wait_s"] = found.measured_wait_s
    return results


def _of_policy(stem: str, one: Metrics) -> dict[str, Cell]:
    return {
        f"{stem}mean_wait_s": one.mean_wait_s,
        f"{stem}median_wait_s": one.median_wait_s,
        f"{stem}p95_wait_s": one.p95_wait_s,
        f"{stem}slowdown_ratio": one.slowdown_ratio,
        f"{stem}makespan_s": one.makespan_s,
        f"{stem}utilisation_fraction": one.utilisation_fraction,
        f"{stem}useful_fraction": one.useful_fraction,
        f"{stem}blocked_fraction": one.blocked_fraction,
        f"{stem}goodput_fraction": one.goodput_fraction,
        f"{stem}failed_fraction": one.failed_fraction,
        f"{stem}fairness_fraction": one.fairness_fraction,
        f"{stem}num_restarts": one.num_restarts,
    }


def _notes(scenario: Scenario, found: Comparison) -> tuple[str, ...]:
    machine, file = found.question.machine, found.question.file
    lines = [f"{run.policy}: {RULES[run.policy].title}" for run in found.runs]
    lines.append(
        f"{with_article(machine.name)}: {counted(machine.num_nodes, machine.unit)} of {machine.node_chips} chips, "
        f"{_under(machine.num_leaves)}"
    )
    if machine.num_hosts > 1:
        lines.append(f"a domain is {machine.num_hosts} nodes, and is down while any of them is")
    if file is not None:
        lines.append(f"{file.path} is read as {file.title}")
        if file.left_out:
            lines.append(_left_out(file))
        lines += file.notes
        if not scenario.given("chips"):
            lines.append(
                f"nobody says how many chips there are: {machine.num_chips:,}, the most that it held at once"
            )
    if found.measured_wait_s is not None:
        lines.append(
            f"by its own starts the jobs of the trace waited {fmt(found.measured_wait_s, 's')} on average"
        )
    if found.runs[found.best].num_failures:
        lines.append(
            f"{counted(found.runs[found.best].num_failures, 'failure')} of {machine.unit}s; stopped jobs wait again"
        )
    return (*lines, *idle_in_queue(scenario, found))


def _left_out(file: QueueFile) -> str:
    are = "is" if file.num_left_out == 1 else "are"
    why = ", ".join(f"{one.reason} ({one.rows:,})" for one in file.left_out)
    return f"{counted(file.num_left_out, 'row')} of the file {are} left out: {why}"


def _under(num_leaves: int) -> str:
    if num_leaves == 1:
        return "alike to the network, wherever a job lies"
    return f"under {counted(num_leaves, 'leaf switch')}; how far a job lies apart is counted in those and in pods"


def _next(scenario: Scenario, found: Comparison) -> tuple[str, ...]:
    others = [name for name in QUEUE_POLICIES if name not in found.question.policies]
    more = (
        (follow(scenario, changes={"policy": [*found.question.policies, others[0]]}),)
        if others and len(found.runs) < 3
        else ()
    )
    return (
        *more,
        follow(scenario, tail="-o queue.html"),
        follow(scenario, tail="-o queue.perfetto-trace"),
        explained(follow(scenario)),
        our_error(scenario, "scheduling"),
    )
