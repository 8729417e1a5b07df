"""Cisco's own client, `virl2-client`, unchanged, in a thread because it is synchronous."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, TypeVar

from virl2_client import ClientLibrary

from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.cml.simulation import DEFAULT_VERSION, Settings

T = TypeVar("T")
PASSWORD = "a-secret"

TOPOLOGY = """
lab: {version: 0.1.0, title: two-hosts, description: smallest useful lab, notes: 'line 1'}
nodes:
- {id: n0, label: h0, node_definition: alpine, x: 0, y: 0, configuration: hostname h0, tags: ['serial:4567'],
   interfaces: [{id: i0, label: eth0, slot: 0, type: physical}]}
- {id: n1, label: r1, node_definition: iosv, x: 200, y: 0,
   interfaces: [{id: lo, label: Loopback0, type: loopback}, {id: i1, label: Gi0/0, slot: 0, type: physical}]}
links: [{id: l0, n1: n0, i1: i0, n2: n1, i2: i1}]
"""


def quick() -> CmlSimulator:
    """Return a simulator whose nodes boot quickly; `SIMULATED_CML` names the release."""
    version = os.environ.get("SIMULATED_CML", DEFAULT_VERSION)
    return CmlSimulator(Settings(password=PASSWORD, boot_seconds=(0.05, 0.1), version=version))


def connect(url: str, username: str = "admin", password: str = PASSWORD, **options: Any) -> ClientLibrary:
    """Log in; a login that fails leaves no connection open, as the client itself would."""
    client = ClientLibrary.__new__(ClientLibrary)
    defaults = {"ssl_verify": False, "allow_http": True, "raise_for_auth_failure": True}
    try:
        client.__init__(url, username, password, **{**defaults, **options})
    except BaseException:
        if hasattr(client, "_session"):
            client._session.close()
        raise
    return client


async def drive(simulator: CmlSimulator, scenario: Callable[[Any], T], **options: Any) -> T:
    """Run a scenario with a client that is logged in."""

    def run() -> T:
        client = connect(simulator.url, **options)
        try:
            return scenario(client)
        finally:
            client._session.close()

    return await asyncio.to_thread(run)


def import_lab(client: Any, title: str | None = None) -> Any:
    """Import the lab, with a short wait between polls: imported labs otherwise take 5 s."""
    lab = client.import_lab(TOPOLOGY, title)
    lab.wait_time = 0.02
    return lab
