"""Hosts of a pretended network: a network namespace each, joined by a bridge, whose cables can be pulled out."""

import os
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Network:
    """A hub at 10.77.0.1 and hosts at 10.77.0.2, ...

    Attributes:
        hub: name of its namespace.
        hosts: those of the hosts.
    """

    hub: str
    hosts: tuple[str, ...]

    address = "10.77.0.1"

    def on(self, host: str) -> tuple[str, ...]:
        """What to put before a command that is to run on a host."""
        return ("ip", "netns", "exec", host)

    def cut(self, host: str) -> None:
        """Pull the cable of a host out at the hub."""
        _ip("-n", self.hub, "link", "set", f"to{self.hosts.index(host)}", "down")


@contextmanager
def network(count: int) -> Generator[Network]:
    """So many hosts around a hub; skips where network namespaces are not allowed."""
    hub, *hosts = names = [f"isthmus-{os.getpid()}-{i}" for i in range(count + 1)]
    made: list[str] = []
    try:
        for name in names:
            try:
                _ip("netns", "add", name)
            except (OSError, subprocess.CalledProcessError) as error:
                pytest.skip(f"no network namespaces here: {error}")
            made.append(name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", hub, "address", "add", f"{Network.address}/24", "dev", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        for i, host in enumerate(hosts):
            _ip("-n", hub, "link", "add", f"to{i}", "type", "veth", "peer", "name", "cable", "netns", host)
            _ip("-n", hub, "link", "set", f"to{i}", "master", "bridge", "up")
            _ip("-n", host, "address", "add", f"10.77.0.{i + 2}/24", "dev", "cable")
            _ip("-n", host, "link", "set", "cable", "up")
        yield Network(hub, tuple(hosts))
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def _ip(*arguments: str) -> None:
    command: Sequence[str] = ("ip", *arguments)
    subprocess.run(command, check=True, capture_output=True)
