import ipaddress
import socket
import subprocess
import sys
from pathlib import Path

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
        [free] = free_ports(1, claim_s=0)
        assert free_ports(1, candidates=[taken.getsockname()[1], free]) == [free]


def test_a_port_is_given_to_nobody_else_before_its_program_listens() -> None:
    choose = "from vkpsandbox.processes.ports import free_ports; print(free_ports(1, candidates=[%d, %d])[0])"
    first, second = free_ports(2, claim_s=0)
    for chosen in (first, second):
        program = [sys.executable, "-c", choose % (first, second)]
        given = subprocess.run(program, check=True, capture_output=True, text=True)  # noqa: S603 (our own)
        assert given.stdout.split() == [str(chosen)]
    with pytest.raises(SandboxError, match="fewer than 1"):
        free_ports(1, candidates=[first, second])


def test_claims_that_cannot_be_read_count_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    [free] = free_ports(1, claim_s=0)
    [file] = tmp_path.iterdir()
    for kept in ("{", "[]", f'{{"{free}": "soon"}}', f'{{"{free}": 9e12}}', ""):
        file.write_text(kept)
        assert free_ports(1, candidates=[free], claim_s=0) == [free]


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
