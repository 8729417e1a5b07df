"""Runs requests against a simulation without a network, at times that the test chooses."""

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from vkpsim.cml.accounts import User
from vkpsim.cml.calls import Binary, Call, Created, Text
from vkpsim.cml.errors import CmlError
from vkpsim.cml.server import ROUTES
from vkpsim.cml.simulation import Settings, Simulation

TWO_HOSTS = """
lab: {version: 0.1.0, title: two-hosts, description: smallest useful lab, notes: ''}
nodes:
- {id: n0, label: h0, node_definition: alpine, x: 0, y: 0, configuration: hostname h0, tags: ['serial:4567'],
   interfaces: [{id: i0, label: eth0, slot: 0, type: physical}, {id: i1, label: eth1, slot: 1, type: physical}]}
- {id: n1, label: h1, node_definition: alpine, x: 200, y: 0,
   interfaces: [{id: i0, label: eth0, slot: 0, type: physical}, {id: i1, label: eth1, slot: 1, type: physical}]}
links: [{id: l0, n1: n0, i1: i0, n2: n1, i2: i0}]
"""


class Bench:
    """A simulation and its clock."""

    def __init__(self, **settings: Any) -> None:
        numbers = itertools.count(1)
        self.now = 1000.0
        self.sim = Simulation(
            Settings(**{"password": "a-secret", "boot_seconds": (10.0, 10.0), **settings}),
            self.now,
            lambda: f"00000000-0000-4000-8000-{next(numbers):012d}",
        )
        self.world = self.sim.world
        self.admin = next(iter(self.sim.accounts.users.values()))

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        user: User | None = None,
    ) -> tuple[int, Any]:
        """Send a request; give status and JSON, or the description of a refusal."""
        self.world.advance(self.now)
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        for route in ROUTES:
            match = re.fullmatch(re.sub(r"{(\w+)(?::([^}]*))?}", r"(?P<\1>[^/]+)", route.path), path)
            if match is None or route.method != method:
                continue
            call = Call(
                sim=self.sim,
                now=self.now,
                user=user or self.admin,
                path=match.groupdict(),
                query=query or {},
                headers={},
                body=raw,
            )
            try:
                answer = route.handler(call)
            except CmlError as error:
                return error.status, error.description
            match answer:
                case None:
                    return 204, None
                case Text(text):
                    return 200, text
                case Binary(content):
                    return 200, content
                case Created(created):
                    return 201, json.loads(msgspec.json.encode(created))
                case _:
                    return 200, json.loads(msgspec.json.encode(answer))
        raise AssertionError(f"no route {method} {path}")

    def load(self, topology: str = TWO_HOSTS) -> str:
        """Import a lab; give its id."""
        status, answer = self.request("POST", "/import", topology.encode())
        assert status == 200, answer
        return str(answer["id"])

    def states(self, lab: str) -> dict[str, str]:
        """Return the state of each node by label."""
        _, nodes = self.request("GET", f"/labs/{lab}/nodes", query={"data": "true"})
        return {node["label"]: node["state"] for node in nodes}

    def node(self, lab: str, label: str) -> str:
        """Find a node by label."""
        _, node = self.request("GET", f"/labs/{lab}/find/node/label/{label}")
        return str(node)
