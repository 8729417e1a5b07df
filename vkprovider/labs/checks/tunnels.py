"""Checks of tunnels: the broker as this process reaches it, and how workers answer through their agents."""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from tunnels.mqtt.broker import Broker, BrokerFault, LoginRefused, TlsFault, TopicRefused
from vkprovider.doctor.findings import Finding, fault, note, unchecked
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.labs.checks.workers import WorkerProbe
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import count, listed

_NAMED_MAX: Final = 5
"""CMLWorkers that one line names."""
_ACL: Final = "manifests/mosquitto/aclfile"


class BrokerSeen(msgspec.Struct, frozen=True):
    """What the broker of `spec.tunnel: mqtt`, and the agents that use it, answered to this process.

    Attributes:
        fault: Why the broker cannot be used.
        probes: What the workers answered through their agents, by CMLWorker.
        round_trips_s: The time that took, by CMLWorker: to CML and back.
    """

    fault: BrokerFault | None = None
    probes: dict[str, WorkerProbe] = {}
    round_trips_s: dict[str, float] = {}


def check_broker(broker: Broker, seen: BrokerSeen) -> list[Finding]:
    """Check the broker, and note how soon workers answer through their agents."""
    about = f"Broker/{broker}"
    if seen.fault is not None:
        return [_broken(about, broker, seen.fault)]
    heard = [probe for probe in seen.probes.values() if probe.unheard_s is None]
    if seen.probes and not heard:
        text = f"it accepts {_user(broker)}, but nothing was heard of {count(len(seen.probes), 'agent')}"
        remedy = f"See that they run, and that {_user(broker)} may read vkprovider/+/up/#, as in {_ACL}."
        return [fault(about, DoctorReason.NO_AGENT_HEARD, text, remedy)]
    if not seen.round_trips_s:
        return []
    taken_s = sorted(seen.round_trips_s.values())
    slowest = max(seen.round_trips_s, key=lambda name: seen.round_trips_s[name])
    text = f"{len(taken_s)} of {count(len(seen.probes), 'worker')} answered through agents; "
    text += f"median {_ms(taken_s[len(taken_s) // 2])}, slowest {slowest} {_ms(taken_s[-1])}"
    return [note(about, DoctorReason.ROUND_TRIP, text)]


def check_unseen(tunnels: Mapping[str, Collection[str]], error: InputError | None, namespace: str) -> list[Finding]:
    """Report the tunnels that cannot be examined from here, and why.

    Args:
        tunnels: CMLWorkers by `spec.tunnel`.
        error: Why the settings of MQTT cannot be used.
        namespace: The provider's.
    """
    found = []
    if error is not None:
        found.append(unchecked("Tunnel/mqtt", error.reason, error.message, "Correct it where the doctor runs."))
    elif names := tunnels.get("mqtt"):
        text = f"the broker of {_listed(names)} is not examined: VKPROVIDER_TUNNEL_MQTT_URL is not set where this runs"
        remedy = f"kubectl -n {namespace} exec deploy/vkprovider -- vkprovider doctor"
        found.append(note("Tunnel/mqtt", DoctorReason.TUNNEL_NOT_EXAMINED, text, remedy))
    if names := tunnels.get("http"):
        text = f"agents dial replicas only, so that {_listed(names)} cannot be asked from here: see the condition Ready"
        remedy = "vkprovider_tunnel_agents on the replicas' /metrics counts their agents by state."
        found.append(note("Tunnel/http", DoctorReason.TUNNEL_NOT_EXAMINED, text, remedy))
    return found


def _broken(about: str, broker: Broker, why: BrokerFault) -> Finding:
    match why:
        case TlsFault():
            remedy = "Correct VKPROVIDER_TUNNEL_MQTT_CA_FILE, the URL's scheme, or the broker's certificate."
            return fault(about, DoctorReason.BROKER_NOT_TRUSTED, str(why), remedy)
        case LoginRefused():
            text = f"it does not accept {_user(broker)}: {why}"
            remedy = "Correct VKPROVIDER_TUNNEL_MQTT_USERNAME and …_PASSWORD, or the broker's users."
            return fault(about, DoctorReason.BROKER_LOGIN_REFUSED, text, remedy)
        case TopicRefused():
            return fault(
                about, DoctorReason.BROKER_TOPIC_REFUSED, str(why), f"Give {_user(broker)} the rights of {_ACL}."
            )
        case _:
            remedy = "See that it runs, and that VKPROVIDER_TUNNEL_MQTT_URL and the NetworkPolicy lead there."
            return fault(about, DoctorReason.BROKER_UNREACHABLE, str(why), remedy)


def _user(broker: Broker) -> str:
    login = broker.login()
    return f"user {login[0]}" if login is not None else "the client without a user name"


def _listed(names: Collection[str]) -> str:
    return f"CMLWorker {listed(sorted(names), _NAMED_MAX)}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
