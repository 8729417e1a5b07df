"""The cost of ports: reading a topology and writing it for a lablet, choosing its ports, and saving them; a mux's pass.

The yardstick is PyYAML's C loader on the same text, in the same run.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import yaml

from bench.figures import Figures
from vkprovider.labs.pure.claims import document
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.claims.document import StoredClaims
from vkprovider.labs.pure.topology.topology import parse
from vkprovider.mux.pure.decide import decide
from vkprovider.mux.pure.facts import Channel, Mux, MuxRef, Owner, ServicePort
from vkprovider.mux.pure.muxnames import MUX_PREFIX
from vkprovider.mux.pure.state import MuxState
from vkprovider.platform.ports.allocator import PortBounds, RequestedPort, allocate

DEVICES = 100
RUNS = 41
_YARDSTICK = "CSafeLoader on the same text"
_WHOLE = "parse, template, rewrite of 100 devices"
_CHOICE = "50 ports among 5,000 claims"
_MUX = "decide about a mux of 2,400 ports"
_COMPARED = {_WHOLE: "parse, template, rewrite", _CHOICE: _CHOICE, _MUX: _MUX}


async def run() -> Figures:
    """Measure."""
    figures = _topology() | _claims() | {_MUX: (deciding_ms(), "ms")}
    yardstick_ms, unit = figures[_YARDSTICK][0], "ratio"
    for name, short in _COMPARED.items():
        figures[f"{short} / CSafeLoader"] = (figures[name][0] / yardstick_ms, unit)
    return figures


def _claims() -> Figures:
    """Choose 50 ports where 5,000 lablets have one each and none of the gaps holds two, then one row after another."""
    usage = document.usage_of(_stored(5000, 1, step=2).claims.values())
    wanted = [RequestedPort(f"slot-{i}") for i in range(50)]
    apart, row = PortBounds(10_000, 19_999), PortBounds(10_000, 20_100)
    assert list(allocate(wanted, usage, apart, per_instance_max=50).values()) == list(range(10_001, 10_101, 2))
    assert list(allocate(wanted, usage, row, per_instance_max=50).values()) == list(range(19_999, 20_049))
    few, many = _stored(100, 6), _stored(1000, 6)
    took_ms = [_median_ms(partial(allocate, wanted, usage, where, per_instance_max=50)) for where in (apart, row)]
    return {
        _CHOICE: (max(took_ms), "ms"),
        "write 100 lablets with 6 ports": (_median_ms(lambda: _write(few)), "ms"),
        "write 1,000 lablets with 6 ports": (_median_ms(lambda: _write(many)), "ms"),
    }


def deciding_ms() -> float:
    """Time the decision about a mux that is nearly full, and where nothing has changed, as in most of its passes."""
    ports = tuple(ServicePort(f"p{n}", 8000 + n) for n in range(5))
    asked = {f"{MUX_PREFIX}/external-ports": ",".join(f"{port.name}:auto" for port in ports)}
    channels = [Channel(Owner("mux", f"netlab-{n:04}"), ports, asked) for n in range(480)]
    mux = Mux(MuxRef("mux", "mux"), {f"{MUX_PREFIX}/port-range": "20000-29999"})
    plan = decide(mux, channels, MuxState(), 0)
    assert len(plan.ports) == 2400
    mux = mux._replace(ports=plan.ports)
    return _median_ms(lambda: decide(mux, channels, plan.state, 1))


def _write(stored: StoredClaims) -> None:
    document.write(stored, worker="w1", installation="inst")


def _stored(lablets: int, ports: int, *, step: int = 1) -> StoredClaims:
    found = {}
    for i in range(lablets):
        uid = f"{i:08x}-2222-3333-4444-555555555555"
        held = {f"router-{slot}_serial": 10_000 + step * (ports * i + slot) for slot in range(ports)}
        found[uid] = Claim(uid, "team", f"netlab-7d9c5b8f6-{i}", "netlab", "d", "1.0", "x", lab_id=uid, ports=held)
    return StoredClaims(found)


def _topology() -> Figures:
    text = topology_text(DEVICES)
    topology = parse(text)
    ports = {slot.name: 10_000 + i for i, slot in enumerate(topology.template.slots)}
    assert len(ports) == 3 * DEVICES
    title, notes = "netlab-0a1b2c3d-11111111-2222-3333-4444-555555555555", "vkprovider installation=x"
    written = yaml.safe_load(topology.render(title=title, notes=notes, ports=ports))
    assert [node["tags"][0] for node in written["nodes"]] == [f"serial:{10_000 + 3 * i}" for i in range(DEVICES)]
    return {
        _YARDSTICK: (_median_ms(lambda: yaml.load(text, yaml.CSafeLoader)), "ms"),
        _WHOLE: (_median_ms(lambda: parse(text).render(title=title, notes=notes, ports=ports)), "ms"),
        "rewrite for one more lablet": (
            _median_ms(lambda: topology.render(title=title, notes=notes, ports=ports)),
            "ms",
        ),
        "size of that topology": (len(text) / 1024, "KiB"),
    }


def _median_ms(call: Callable[[], object], runs: int = RUNS) -> float:
    """Time a call: the median of several, so that neither a pause nor a warm start counts.

    In CPU time, which is the whole of what pure code takes, and which neighbours on the machine change less.
    """
    times = []
    for _ in range(runs):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return 1000 * statistics.median(times)


def topology_text(devices: int) -> str:
    """Write a topology as CML exports it: a ring of routers, each with a serial, a screen and an SSH port."""
    nodes = [_router(i) for i in range(devices)]
    links = [
        {"id": f"l{i}", "n1": f"n{i}", "i1": "i0", "n2": f"n{(i + 1) % devices}", "i2": "i1", "label": f"ring-{i}"}
        for i in range(devices)
    ]
    style = {"is_on": True, "padding": 35, "tag_size": 14, "group_distance": 400, "fill_color": "#00AAFF"}
    smart = [{"tag": tag, "label": tag, **style} for node in nodes for tag in node["tags"][:3]]
    lab = {"version": "0.3.0", "title": "ring", "description": "a ring of routers", "notes": "by its author"}
    document = {"annotations": [], "smart_annotations": smart, "nodes": nodes, "links": links, "lab": lab}
    return yaml.safe_dump(document, sort_keys=False)


def _router(i: int) -> dict[str, Any]:
    interface = "interface GigabitEthernet0/{0}\n ip address 10.{1}.{0}.1 255.255.255.0\n no shutdown\n!\n"
    return {
        "id": f"n{i}",
        "label": f"router-{i}",
        "node_definition": "iosv",
        "image_definition": "iosv-159-3-m10",
        "x": 40 * i,
        "y": -20 * i,
        "ram": 512,
        "cpus": 1,
        "hide_links": False,
        "parameters": {},
        "configuration": [
            {"name": "ios_config.txt", "content": "".join(interface.format(slot, i) for slot in range(8))},
        ],
        "tags": [f"serial:{2000 + i}", f"vnc:{3000 + i}", f"pat:{4000 + i}:22", "core"],
        "interfaces": [
            {"id": f"i{slot}", "label": f"GigabitEthernet0/{slot}", "slot": slot, "type": "physical"}
            for slot in range(5)
        ],
    }
