"""The agents beside a sandbox's workers, and the MQTT broker that some sandboxes have: each a process of its own."""

import base64
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from vkpsandbox.controlplane.content import PORT_RANGE
from vkpsandbox.controlplane.programs import PROVIDER_GRACE_S, VKPROVIDER, WORKER_GRACE_S
from vkpsandbox.errors import SandboxError
from vkpsandbox.paths import Layout
from vkpsandbox.processes.ports import free_ports
from vkpsandbox.processes.process import ProcessSpec, Restart, write_atomically
from vkpsandbox.processes.record import Broker, Record, Worker

Tunnel = Literal["direct", "mqtt", "http"]

_REPLICA: Final = "vkprovider"
"""The account of all replicas at the broker; an agent's account has the agent's name."""
_ROUNDS: Final = 101
"""The default of mosquitto_passwd."""
_SALT_BYTES: Final = 12


def plan_broker(workers: Iterable[Worker]) -> Broker:
    """Choose the broker's port and the passwords of its accounts.

    Raises:
        SandboxError: If there is no mosquitto.
    """
    search = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))
    program = shutil.which("mosquitto", path=search)
    if program is None:
        raise SandboxError("there is no mosquitto, which `--tunnel mqtt` needs: apt-get install mosquitto")
    [port] = free_ports(1)
    accounts = {name: secrets.token_urlsafe(18) for name in (_REPLICA, *(worker.name for worker in workers))}
    return Broker(program=program, port=port, accounts=accounts)


def plan_tokens(workers: Iterable[Worker]) -> dict[str, str]:
    """Choose the tokens of agents that dial the replicas."""
    return {worker.name: secrets.token_urlsafe(18) for worker in workers}


def broker_process(layout: Layout, broker: Broker, manifests: Path) -> ProcessSpec:
    """Write the broker's configuration and return its command line.

    Args:
        layout: The sandbox's files.
        broker: The broker.
        manifests: Where the access rules are that are shipped.
    """
    users, rules, config = (layout.workers / f"mosquitto.{end}" for end in ("users", "acl", "conf"))
    write_atomically(users, "".join(f"{n}:{_hashed(p)}\n" for n, p in broker.accounts.items()).encode())
    write_atomically(rules, (manifests / "mosquitto" / "aclfile").read_bytes())
    lines = (
        f"listener {broker.port} 127.0.0.1",
        "allow_anonymous false",
        f"password_file {users}",
        f"acl_file {rules}",
        "max_packet_size 262144",
        "persistence false",
        "set_tcp_nodelay true",
        *(("user root",) if os.geteuid() == 0 else ()),  # else it would become a user that may not read its files
    )
    write_atomically(config, "\n".join((*lines, "")).encode())
    return ProcessSpec(
        name=broker.process,
        argv=[broker.program, "-c", str(config)],
        url=broker.url,
        restart=Restart.UNLESS_KILLED,
        grace_s=WORKER_GRACE_S,
    )


def replica_settings(record: Record) -> dict[str, str]:
    """Return the settings with which all replicas are reached by agents."""
    if record.broker is not None:
        return _account(record.broker, _REPLICA)
    known = " ".join(f"{name}:{token}" for name, token in record.tokens.items())
    return {"VKPROVIDER_TUNNEL_HTTP_TOKENS": known} if known else {}


def dialled(provider: ProcessSpec) -> ProcessSpec:
    """Return a replica that tells agents where they reach it."""
    return msgspec.structs.replace(
        provider, env={"VKPROVIDER_TUNNEL_HTTP_ADVERTISED_URL": provider.url, **provider.env}
    )


def agent_process(
    layout: Layout,
    record: Record,
    worker: Worker,
    providers: Sequence[ProcessSpec],
    ports: Mapping[str, int] = PORT_RANGE,
) -> ProcessSpec:
    """Write an agent's credentials file and return its command line.

    Args:
        layout: The sandbox's files.
        record: The sandbox.
        worker: The worker beside it.
        providers: The replicas, which it dials unless there is a broker.
        ports: The port range of the worker, `{"start": 2000, "end": 7999}`.
    """
    credentials = layout.workers / f"{worker.name}.credentials"
    write_atomically(credentials, f"{worker.username}\n{worker.password}\n".encode())
    return ProcessSpec(
        name=worker.agent,
        argv=[*VKPROVIDER, "agent"],
        env={
            **_dials(record, worker, providers),
            "VKPROVIDER_AGENT_NAME": worker.name,
            "VKPROVIDER_AGENT_CML_URL": worker.url,
            "VKPROVIDER_AGENT_ADDRESS": worker.address,
            "VKPROVIDER_AGENT_PORTS": f"{ports['start']}-{ports['end']}",
            "VKPROVIDER_AGENT_CREDENTIALS_FILE": str(credentials),
            "VKPROVIDER_AGENT_STATE_FILE": str(layout.workers / f"{worker.name}.agent"),
            "VKPROVIDER_AGENT_INSECURE_SKIP_VERIFY": "true",
        },
        url=worker.url,
        restart=Restart.UNLESS_KILLED,
        grace_s=PROVIDER_GRACE_S,
    )


def _dials(record: Record, worker: Worker, providers: Sequence[ProcessSpec]) -> dict[str, str]:
    if record.broker is not None:
        return _account(record.broker, worker.name)
    return {
        "VKPROVIDER_TUNNEL_HTTP_URL": " ".join(provider.url for provider in providers),
        "VKPROVIDER_TUNNEL_HTTP_TOKEN": record.tokens[worker.name],
    }


def _account(broker: Broker, name: str) -> dict[str, str]:
    return {
        "VKPROVIDER_TUNNEL_MQTT_URL": broker.url,
        "VKPROVIDER_TUNNEL_MQTT_USERNAME": name,
        "VKPROVIDER_TUNNEL_MQTT_PASSWORD": broker.accounts[name],
    }


def _hashed(password: str) -> str:
    """Return a password as mosquitto_passwd writes it: `$7$` is PBKDF2 with SHA-512."""
    salt = os.urandom(_SALT_BYTES)
    key = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ROUNDS)
    return f"$7${_ROUNDS}${base64.b64encode(salt).decode()}${base64.b64encode(key).decode()}"
