"""A network of namespaces in which a node can be cut off; in a process of its own, which enters it for good."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sluicegate.errors import BadInput
from sluicegate.lab.chaos.faults import chosen

STORY = """
import socket, subprocess, sys, threading, time
from sluicegate.errors import EnvironmentLacks
from sluicegate.lab.chaos.network import own_network

SERVER = "import socket; s = socket.create_server((sys.argv[1], 5000)); print('up', flush=True)"
SERVER = "import sys; " + SERVER + "\\nwhile True: s.accept()[0].sendall(b'x')"

def answers(address):
    try:
        with socket.create_connection((address, 5000), timeout=1.0) as found:
            return found.recv(1) == b"x"
    except OSError:
        return False

def once(address, expected):
    until = time.monotonic() + 20
    while (found := answers(address)) is not expected and time.monotonic() < until:
        time.sleep(0.1)
    return found

try:
    with own_network() as hosts:
        address, before = hosts.of_worker(1)
        server = subprocess.Popen([*before, sys.executable, "-c", SERVER, address], stdout=subprocess.PIPE)
        server.stdout.readline()
        told = [answers(address)]
        cut = threading.Thread(target=hosts.cut_for, args=(1, 3.0))
        cut.start()
        told.append(once(address, False))
        cut.join()
        told.append(once(address, True))
        server.kill()
        server.wait()
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    print(told, hosts.prefix in left)
except EnvironmentLacks as problem:
    print(f"skipped: {problem}")
"""


def test_a_node_that_is_cut_off_does_not_answer_until_the_cut_is_over() -> None:
    done = subprocess.run([sys.executable, "-c", STORY], capture_output=True, text=True, timeout=120, check=False)
    if done.stdout.startswith("skipped: "):
        pytest.skip(done.stdout.strip())
    assert (done.stdout.strip(), done.stderr) == ("[True, False, True] False", "")


def test_the_fault_asks_for_nodes_that_are_namespaces() -> None:
    with pytest.raises(BadInput, match="--master netns"):
        chosen("network-cut", cluster=True)
    assert [fault.name for fault in chosen("network-cut", cluster=True, network=True)] == ["network-cut"]
    assert "network-cut" not in {fault.name for fault in chosen("all", cluster=True)}
