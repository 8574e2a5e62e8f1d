"""Nodes behind commands: a folder stands for the cloud, the commands are real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.domain import Vm
from sluicegate.errors import BadInput, EnvironmentLacks, Infeasible, SluicegateError
from sluicegate.spark.act.nodes import CommandNodes, LocalNodes, NodeProvider
from sluicegate.spark.cluster.standalone import Cluster

LIST = "sh -c 'cd {folder} && for node in *; do if [ -f $node ]; then echo $node $(cat $node); fi; done'"


@pytest.fixture
def cloud(tmp_path: Path) -> Path:
    """One file for each node, which holds its slots."""
    folder = tmp_path / "cloud"
    folder.mkdir()
    return folder


@pytest.fixture
def nodes(cloud: Path) -> CommandNodes:
    return CommandNodes(
        start_command=f"sh -c 'echo 4 > {cloud}/{{name}}'",
        stop_command=f"rm {cloud}/{{name}}",
        list_command=LIST.format(folder=cloud),
        prefix="node",
        poll_s=0.05,
    )


def test_nodes_come_by_name_with_their_slots_and_go(nodes: CommandNodes) -> None:
    provider: NodeProvider = nodes
    assert provider.start(2) == ["node-1", "node-2"]
    assert provider.running() == (Vm("node-1", 4), Vm("node-2", 4))
    provider.stop(["node-1"])
    assert provider.running() == (Vm("node-2", 4),)


def test_a_new_node_takes_no_name_in_use(nodes: CommandNodes) -> None:
    nodes.start(3)
    nodes.stop(["node-2"])
    assert nodes.start(2) == ["node-2", "node-4"]


def test_a_command_that_names_nodes_itself_is_told_how_many(cloud: Path) -> None:
    start = f"sh -c 'for i in $(seq {{count}}); do : > {cloud}/i-$i; done; echo {{master}} > {cloud}/../asked'"
    nodes = CommandNodes(start, f"rm {cloud}/{{name}}", LIST.format(folder=cloud), "spark://host:7077", slots=8)
    assert nodes.start(2) == ["i-1", "i-2"]
    assert nodes.running() == (Vm("i-1", 8), Vm("i-2", 8))
    assert (cloud.parent / "asked").read_text() == "spark://host:7077\n"


def test_a_node_is_drained_before_it_stops(nodes: CommandNodes, cloud: Path) -> None:
    seen: list[tuple[str, bool]] = []
    draining = CommandNodes(
        nodes.start_command,
        nodes.stop_command,
        nodes.list_command,
        prefix="node",
        poll_s=0.05,
        drain=lambda name: seen.append((name, (cloud / name).exists())),
    )
    draining.start(2)
    draining.stop(["node-2", "node-1", "node-2"])
    assert seen == [("node-2", True), ("node-1", True)]
    assert draining.running() == ()


def test_a_node_that_cannot_be_drained_is_kept(nodes: CommandNodes) -> None:
    def refuse(name: str) -> None:
        raise Infeasible(f"{name} runs all executors")

    keeping = CommandNodes(nodes.start_command, nodes.stop_command, nodes.list_command, drain=refuse, poll_s=0.05)
    (name,) = keeping.start(1)
    with pytest.raises(Infeasible, match="runs all executors"):
        keeping.stop([name])
    assert [vm.name for vm in keeping.running()] == [name]


def test_stopping_a_node_that_is_gone_does_no_harm(nodes: CommandNodes) -> None:
    nodes.stop(["node-7"])
    assert nodes.running() == ()


def test_a_node_that_never_comes_is_an_error_after_a_stated_time(nodes: CommandNodes) -> None:
    lost = CommandNodes("true {name}", nodes.stop_command, nodes.list_command, patience_s=0.2, poll_s=0.05)
    with pytest.raises(EnvironmentLacks, match=r"0 of 2 nodes came within 0\.2 s"):
        lost.start(2)


def test_a_node_that_does_not_go_is_an_error_after_a_stated_time(nodes: CommandNodes) -> None:
    held = CommandNodes(nodes.start_command, "true {name}", nodes.list_command, patience_s=0.2, poll_s=0.05)
    (name,) = held.start(1)
    with pytest.raises(EnvironmentLacks, match=rf"{name} still listed 0\.2 s after"):
        held.stop([name])


@pytest.mark.parametrize(
    ("start", "stop", "listing", "said"),
    [
        ("run", "rm {name}", "ls", "neither {name} nor {count}"),
        ("run {name}", "rm", "ls", "lacks {name}"),
        ("run {name}", "rm {name}", "ls {name}", "only have {master}"),
        ("run '{name}", "rm {name}", "ls", "No closing quotation"),
    ],
)
def test_templates_that_cannot_work_are_refused_at_once(start: str, stop: str, listing: str, said: str) -> None:
    with pytest.raises(BadInput) as problem:
        CommandNodes(start, stop, listing)
    assert said in str(problem.value)


@pytest.mark.parametrize("line", ["node-1 many", "node-1 -3", "node-1 0", "rm;-rf 2", "-rf"])
def test_a_listing_nobody_can_use_is_an_error(line: str) -> None:
    with pytest.raises(SluicegateError, match="list command printed"):
        CommandNodes("run {name}", "rm {name}", f"echo '{line}'").running()


def test_a_start_command_that_fails_shows_its_last_words(nodes: CommandNodes) -> None:
    failing = CommandNodes("sh -c 'echo {name}: quota >&2; exit 3'", nodes.stop_command, nodes.list_command)
    with pytest.raises(EnvironmentLacks, match="start command ended with 3: sluicegate-1: quota"):
        failing.start(1)


def test_local_nodes_of_no_cluster_say_how_to_get_one(tmp_path: Path) -> None:
    nodes: NodeProvider = LocalNodes(Cluster(tmp_path))
    assert nodes.running() == ()
    nodes.stop(["worker-1"])
    with pytest.raises(EnvironmentLacks, match="sluicegate cluster up"):
        nodes.start(1)
