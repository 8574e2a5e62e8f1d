"""A network of namespaces that nodes of a cluster can be cut off from. Needs root, on Linux with iproute2.

This process enters a namespace of its own, with the master and the drivers that it starts; each node is a namespace
that a bridge in it joins. The network has no way out, so nothing in it can be reached from the machine's own.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sluicegate.errors import EnvironmentLacks
from sluicegate.spark.cluster.daemons import Hosts

_NEW_NETWORK = 0x40000000
"""CLONE_NEWNET of Linux."""
_BRIDGE, _INSIDE = "nodes", "eth0"
_ADDRESS = "10.213.77.{}"
_WIDTH = "/24"


@dataclass(frozen=True, slots=True)
class Namespaces(Hosts):
    """Node ``number`` is the namespace and the bridge's port ``PREFIX-number``."""

    prefix: str = ""

    def of_worker(self, number: int) -> tuple[str, tuple[str, ...]]:
        name, address = self._name(number), _ADDRESS.format(number + 1)
        _ip("netns", "add", name)
        _ip("link", "add", name, "type", "veth", "peer", "name", _INSIDE, "netns", name)
        _ip("link", "set", name, "master", _BRIDGE, "up")
        for words in (("addr", "add", address + _WIDTH, "dev", _INSIDE), ("link", "set", _INSIDE, "up")):
            _ip("-n", name, *words)
        _ip("-n", name, "link", "set", "lo", "up")
        return address, ("ip", "netns", "exec", name)

    def cut_for(self, number: int, seconds: float) -> None:
        """Cut a node off: nothing reaches it and nothing leaves it, and no connection is closed."""
        _ip("link", "set", self._name(number), "nomaster")
        try:
            time.sleep(seconds)
        finally:
            _ip("link", "set", self._name(number), "master", _BRIDGE)

    def _name(self, number: int) -> str:
        return f"{self.prefix}-{number}"


@contextmanager
def own_network() -> Iterator[Namespaces]:
    """Enter a network of its own, for good; its namespaces are deleted after the block."""
    if shutil.which("ip") is None:
        raise EnvironmentLacks("no `ip` found to make network namespaces: install iproute2")
    if os.geteuid() != 0:
        raise EnvironmentLacks("network namespaces can be made by root only: run as root, or give another --master")
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK):
        raise EnvironmentLacks(f"no network namespace can be made: {os.strerror(ctypes.get_errno())}")
    hosts = Namespaces(_ADDRESS.format(1), f"sg{os.getpid()}")  # a name of a device has at most 15 characters
    try:
        _ip("link", "set", "lo", "up")
        _ip("link", "add", _BRIDGE, "type", "bridge")
        _ip("addr", "add", hosts.master + _WIDTH, "dev", _BRIDGE)
        _ip("link", "set", _BRIDGE, "up")
        os.environ["SPARK_LOCAL_IP"] = hosts.master  # where drivers that this process starts listen
        yield hosts
    finally:
        for line in _ip("netns", "list").splitlines():
            name = line.split()[0]
            if name.startswith(f"{hosts.prefix}-"):
                _ip("netns", "del", name)


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise EnvironmentLacks(f"ip {' '.join(words)}: {done.stderr.strip()}: network namespaces are not allowed here")
    return done.stdout
