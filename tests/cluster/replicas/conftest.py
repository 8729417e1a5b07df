"""The sandbox of all tests with several replicas."""

from collections.abc import Iterator

import pytest

from tests.cluster.replicas import FIRST, LAST, REPLICAS, SECRET
from tests.support.sandboxes import started
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.tunnels import Tunnel


@pytest.fixture(scope="package")
def sandbox(tmp_path_factory: pytest.TempPathFactory, tunnel: Tunnel) -> Iterator[Sandbox]:
    """As many workers as replicas, with sixty ports each; hosts boot at once, `csr1000v` in twelve seconds.

    Nobody looks again for ten minutes at what has not changed.
    """
    with started(
        "replicas",
        tmp_path_factory.mktemp("sandbox"),
        workers=REPLICAS,
        replicas=REPLICAS,
        audit=True,
        provider_env={
            "WORKER_PROBE_SECONDS": "1",
            "RECONCILE_INTERVAL": "600",
            "VKPROVIDER_EVENTS_SECRET": SECRET,
            "VKPROVIDER_EVENTS_RETRY": "3600",
            "VKPROVIDER_PORT_CHECK_SECONDS": "6",
        },
        worker_args=[
            ["--boot-seconds=0.2", "--boot=csr1000v=12", f"--port-range={FIRST}-{LAST}", "--patty-poll-seconds=0.2"]
        ],
        worker_spec={"portRange": {"start": FIRST, "end": LAST}},
        tunnel=tunnel,
    ) as made:
        yield made
