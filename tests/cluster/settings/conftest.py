"""The sandbox of all tests of special settings, and of a mux."""

from collections.abc import Iterator

import pytest

from tests.support.sandboxes import started
from vkpsandbox import Sandbox, SandboxError
from vkpsandbox.controlplane.relay import find_haproxy

SETTINGS = {
    "ETCD_HOST": "etcd.example.com",
    "ETCD_PORT": "2390",
    "CONTROL_PLANE_API_URL": "http://control-plane.example.com",
    "LABLET_CONTROLLER_INSTANCE_ID": "replica-under-test",
    "LEADER_LEASE_TTL": "9",
    "RECONCILE_INTERVAL": "1",
    "LAB_START_TIMEOUT": "2",
    "CONFIG_EXTRACT_ON_STOP": "false",
    "PORT_RANGE_START": "15000",
    "PORT_RANGE_END": "15099",
    "PORTS_PER_INSTANCE_MAX": "5",
    "LDS_API_URL": "http://lds.example.com",
    "LDS_API_TIMEOUT": "7",
    "S3_ENDPOINT": "http://s3.example.com",
    "S3_ACCESS_KEY": "an-access-key-nobody-may-read",
    "S3_SECRET_KEY": "a-secret-key-nobody-may-read",
    "VKPROVIDER_KUBELET_CERTIFICATE": "csr",
}
WORKER = ("--boot-seconds=0.2", "--boot=csr1000v=86400", "--port-range=15000-15099", "--patty-poll-seconds=0.2")


@pytest.fixture(scope="package")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Two workers without a port range, whose `csr1000v` never boot; a mux with its relay, if there is an HAProxy."""
    try:
        mux = bool(find_haproxy())
    except SandboxError:
        mux = False
    with started(
        "settings",
        tmp_path_factory.mktemp("sandbox"),
        workers=2,
        mux=mux,
        provider_env=SETTINGS,
        worker_args=[WORKER],
        worker_spec={"portRange": None},
    ) as made:
        yield made
