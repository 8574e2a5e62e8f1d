"""`sluicegate run`: an application on Spark under the control loop, its promise kept, its answer checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sluicegate.cli.checked_options import (
    MICRO_BATCH,
    is_file,
    options,
    the_app,
    the_capacity,
    the_cycle_s,
    the_history,
    the_length_s,
    the_load,
    the_mode,
    the_policy,
    the_policy_options,
    the_processors,
    the_promise,
    the_settings,
    the_slots,
    the_stages,
    whole_nodes,
)
from sluicegate.cli.out import place_for
from sluicegate.cli.wanted import BUNDLED_LENGTH, CYCLE, LOCAL, REAL_TIME_POLICY, GroundAsked, Wanted, the_home
from sluicegate.config.typed import executors_from
from sluicegate.errors import BadInput
from sluicegate.runlog.plan_file import MOST_PROCESSORS


def run(
    app: Annotated[str, typer.Argument(metavar="APP", help="An application's name, or a file such as app.py.")],
    length: Annotated[
        str | None,
        typer.Option(
            "--seconds",
            metavar="S",
            help=f"How long to run: 60, 3min (default: a bundled application {BUNDLED_LENGTH}, "
            "a file until it is stopped).",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="The policy; see `sluicegate policies` (default: sluicegate; in real-time mode drs-gigk)."),
    ] = None,
    policy_option: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="An option of the policy; see `sluicegate policies`.")
    ] = None,
    slo: Annotated[
        list[str] | None, typer.Option(metavar="GOAL", help="The promise, for example mean=2s or p95=5s.")
    ] = None,
    master: Annotated[
        str,
        typer.Option(
            metavar="M",
            help="local[N], spark://..., yarn, k8s://..., or cluster: the one that `sluicegate cluster up` started.",
        ),
    ] = LOCAL,
    load: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A trace (CSV) to follow (default: the load triples and falls back)."),
    ] = None,
    given: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Real records to feed, over and over.")
    ] = None,
    calm_per_s: Annotated[float | None, typer.Option("--rate", help="Rows a second outside the peak.")] = None,
    budget: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_PROCESSORS, help="Most processors in all (default: the slots of the master)."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the pipeline; one with a pipeline in it resumes it (default for a file: sluicegate-NAME in "
            "the current folder; for a bundled application: a temporary one, whose rows are deleted at the end).",
        ),
    ] = None,
    executors: Annotated[
        str | None, typer.Option(metavar="LEAST:MOST", help="Least and most executors (on a cluster).")
    ] = None,
    executor_cores: Annotated[int, typer.Option(min=1, help="Slots of one executor (on a cluster).")] = 1,
    conf: Annotated[list[str] | None, typer.Option(metavar="K=V", help="Spark settings.")] = None,
    processors: Annotated[
        str | None,
        typer.Option(metavar="A=K,B=K", help="Tasks that operators begin with [1 each]; a resumed run keeps its plan."),
    ] = None,
    cycle: Annotated[
        str,
        typer.Option(metavar="S", help="Between two decisions of a policy that decides in cycles; DRS's T_ra."),
    ] = CYCLE,
    profiles: Annotated[
        Path | None,
        typer.Option("--profiles", "--profile", metavar="DIR", help="What `sluicegate profile` measured."),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A trace (CSV) of the load before the run, a rate for each tick (each tenth of a cycle, where a "
            "policy decides in cycles): its forecaster begins with it.",
        ),
    ] = None,
    mapper: Annotated[
        str | None, typer.Option(help="dsm, rsm or sam: threads of lsa and mba pinned to executors, which are slots.")
    ] = None,
    routing: Annotated[str, typer.Option(help="Rows over slots: even, or slot-aware.")] = "even",
    slot_tasks: Annotated[int, typer.Option(min=1, help="Task slots of an executor, with --mapper.")] = 8,
    mode: Annotated[
        str, typer.Option(help="micro-batch, or real-time: SQL operators from Kafka to Kafka as stages of one query.")
    ] = MICRO_BATCH,
    kafka: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="In real-time mode: where topics are made for sources and sinks."),
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, help="With --kafka: partitions of the topics that are made.")] = 1,
    fuse: Annotated[bool, typer.Option(help="Let neighbours share a query where that pays.")] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only advise: log decisions, move nothing.")] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with pictures.")] = None,
    json_out: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
) -> int:
    """Run an application on Spark; its parallelism follows the load."""
    from sluicegate.cli.one_run import Telling, run_and_tell

    real_time = the_mode(mode, kafka, partitions, executors, mapper)
    policy = policy or (REAL_TIME_POLICY if real_time else "sluicegate")
    own = is_file(app)
    if own and load is not None and length is None:
        raise BadInput("--load stretches its trace over the run: give --seconds too")
    usual = None if own else BUNDLED_LENGTH
    length_s, chosen = the_length_s(usual if length is None else length), the_app(app, given)
    typed = options(
        seconds=length,
        policy=policy if policy != (REAL_TIME_POLICY if real_time else "sluicegate") else None,
        policy_option=policy_option,
        slo=slo,
        master=master if master != LOCAL else None,
        load=load,
        input=given,
        rate=calm_per_s,
        budget=budget,
        executors=executors,
        executor_cores=executor_cores if executor_cores != 1 else None,
        conf=conf,
        processors=processors,
        cycle=cycle if cycle != CYCLE else None,
        profiles=profiles,
        history=history,
        mapper=mapper,
        routing=routing if routing != "even" else None,
        slot_tasks=slot_tasks if mapper else None,
        mode=mode if real_time else None,
        kafka=kafka,
        partitions=partitions if partitions != 1 else None,
        no_fuse=not fuse,
        dry_run=dry_run,
    )
    capacity = the_capacity(chosen, policy, profiles)
    operators = profiles if capacity is None else None
    slots = the_slots(chosen, policy, operators, mapper, routing, slot_tasks, executors)
    cores = slot_tasks if mapper else executor_cores
    if executors is not None:
        executors_from(executors)
    asked = GroundAsked(master, executors, cores, {**slots.conf, **the_settings(conf or [])})
    wanted = Wanted(
        chosen,
        the_policy(policy),
        the_promise(chosen, slo),
        the_load(chosen, calm_per_s, load),
        length_s,
        whole_nodes(asked, policy, capacity),
        budget,
        fuse and operators is None,  # a profile is of one operator
        dry_run,
        ("sluicegate", "run", app, *typed),
        processors=the_stages(chosen, processors)
        if real_time
        else the_processors(chosen, processors, fuse and operators is None),
        cycle_s=the_cycle_s(cycle),
        slots=slots,
        capacity=capacity,
        policy_options=the_policy_options(policy, policy_option),
        real_time=real_time,
        history=the_history(history, policy),
    )
    page = html and place_for(html)
    return run_and_tell(wanted, the_home(chosen, folder, own), Telling(json_out, page))
