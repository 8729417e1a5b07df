import ipaddress
import socket

import pytest

from vkpsandbox import SandboxError
from vkpsandbox.processes.ports import candidate_ports, free_ports, worker_endpoints, worker_public_address


def test_ports_are_different_and_free() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_taken_ports_are_passed_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        [free] = free_ports(1)
        assert free_ports(1, candidates=[taken.getsockname()[1], free, free + 1]) == [free]


def test_too_few_ports_are_an_error() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(SandboxError, match=r"127.0.0.1 has fewer than 1 free ports"),
    ):
        free_ports(1, candidates=[taken.getsockname()[1]])


@pytest.mark.parametrize("first_outgoing", [32768, 49152, 1024])
def test_listeners_keep_clear_of_outgoing_ports(first_outgoing: int) -> None:
    ports = candidate_ports(first_outgoing)
    assert len(ports) >= 1000
    if first_outgoing > 12000:
        assert ports[-1] < first_outgoing


def test_workers_have_addresses_of_their_own() -> None:
    assert worker_public_address(1) == "198.51.100.1"
    hosts = {host for host, _ in worker_endpoints(500)}
    assert len(hosts) == 500
    assert all(ipaddress.ip_address(host).is_loopback for host in hosts)
    assert len({worker_public_address(n) for n in range(1, 501)}) == 500


def test_sandboxes_at_once_share_no_address() -> None:
    [(first, port), _] = worker_endpoints(2)
    with socket.create_server((first, port)):
        [(second, _)] = worker_endpoints(1)
        networks = [int(host.split(".")[1]) for host in (first, second)]
        assert worker_endpoints(1, networks) == [(second, port)]
        [(shared, _)] = worker_endpoints(1, networks[:1])
        assert shared == "127.0.0.1", "every network is taken"
        other = free_ports(1, first)
        assert worker_endpoints(1, networks, [*other, port])[0][0] == second, "taken at another port that may be used"


def test_a_program_that_listens_on_every_address_leaves_workers_their_own() -> None:
    [everywhere, free] = free_ports(2)
    with socket.create_server(("0.0.0.0", everywhere)):  # noqa: S104 (what the test is about)
        [(host, port)] = worker_endpoints(1, ports=[everywhere, free])
    assert host != "127.0.0.1"
    assert port == free
