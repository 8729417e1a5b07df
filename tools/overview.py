"""The picture of README: Pods of two Nodes, and the lab of each on its CML worker."""

from pathlib import Path
from typing import Final, NamedTuple

from tools.svg import MONO, document, dot, line, rect, text

PATH: Final = Path("docs/pictures/overview.svg")
"""The picture, relative to the checkout."""

_TITLE: Final = (
    "An instructor applies a Deployment, the stock kube-scheduler places its Pods on two Nodes, vkprovider makes a lab "
    "of each Pod on the Node's CML worker, and a learner works on a device with kubectl exec."
)
_CSS: Final = f"""\
text {{ font: 14px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; fill: #1f2937 }}
.head {{ font-weight: 600 }}
.middle {{ text-anchor: middle }}
.end {{ text-anchor: end }}
.small {{ font-size: 12px; fill: #55617a }}
.code {{ font: 12px {MONO} }}
.page {{ fill: #ffffff }}
.card {{ fill: #f5f7fb; stroke: #c9d2e3 }}
.node {{ fill: #eaf0ff; stroke: #7c9bf0 }}
.worker {{ fill: #e9f7f0; stroke: #57b58a }}
.pod {{ fill: #ffffff; stroke: #a9bdf3 }}
.lab {{ fill: #ffffff; stroke: #8fd0b1 }}
.provider {{ fill: #4338ca }}
.provider-text {{ fill: #ffffff; font-weight: 600 }}
.provider-small {{ fill: #dfe1ff; font-size: 12px }}
.arrow {{ stroke: #7a869f; stroke-width: 1.5; fill: none; marker-end: url(#tip) }}
.pair {{ stroke: #4338ca; stroke-width: 1.5; stroke-dasharray: 3 4; fill: none }}
.wire {{ stroke: #8a97ad; stroke-width: 1.5 }}
.up {{ fill: #1f9d63 }}
.booting {{ fill: #e0a100 }}
.good {{ font-size: 12px; fill: #147a4b }}
.wait {{ font-size: 12px; fill: #8f6500 }}
.tip {{ fill: #7a869f }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e6edf3 }}
.small {{ fill: #9aa7bd }}
.page {{ fill: #0d1117 }}
.card {{ fill: #161b22; stroke: #353e4c }}
.node {{ fill: #131c35; stroke: #4664b8 }}
.worker {{ fill: #0f231b; stroke: #2f7d5b }}
.pod {{ fill: #1c2745; stroke: #4664b8 }}
.lab {{ fill: #16332a; stroke: #2f7d5b }}
.pair {{ stroke: #8b8cf5 }}
.up {{ fill: #3fce8b }}
.booting {{ fill: #f0b93a }}
.good {{ fill: #5fdca0 }}
.wait {{ fill: #f0c35c }}
}}
"""
_TIP: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0 0L8 4L0 8Z"/></marker></defs>'
)
_WIDTH, _HEIGHT = 960, 596
_SHAPES: Final = {
    "pair": (((28, 40), (92, 40)), ((0, 1),)),
    "triangle": (((60, 24), (26, 56), (94, 56)), ((0, 1), (1, 2), (2, 0))),
    "star": (((60, 40), (24, 26), (96, 26), (24, 56), (96, 56)), ((0, 1), (0, 2), (0, 3), (0, 4))),
}
"""Topologies: where the devices are, and which of them are linked."""


class _Seat(NamedTuple):
    """A lablet: name of its Pod, topology, and how many of its devices run."""

    pod: str
    shape: str
    running: int


_WORKERS: Final = {
    "cml-1": (_Seat("seat-1", "triangle", 3), _Seat("seat-2", "triangle", 3), _Seat("exam-ann", "star", 5)),
    "cml-2": (_Seat("seat-3", "triangle", 3), _Seat("seat-4", "triangle", 1), _Seat("demo-0", "pair", 2)),
}


def picture() -> str:
    """Draw the picture."""
    parts = [_TIP, rect(0, 0, _WIDTH, _HEIGHT, "page", 0), *_actors()]
    parts += [rect(20, 116, 920, 178, "card"), text(36, 140, "Your Kubernetes cluster", "head")]
    parts += [text(924, 140, "Each CML worker is a Node, each lab a Pod: a lablet", "small end")]
    for index, (worker, seats) in enumerate(_WORKERS.items()):
        parts += _worker(36 + 450 * index, worker, seats)
    parts += [
        rect(280, 318, 400, 54, "provider", 27),
        text(480, 341, "vkprovider, the kubelet of these Nodes", "provider-text middle"),
        text(480, 359, "imports, starts, watches, repairs, wipes and deletes labs", "provider-small middle"),
    ]
    return document(_WIDTH, _HEIGHT, _TITLE, _CSS, parts)


def _actors() -> list[str]:
    """Draw who asks for labs, who places them, and who works in them."""
    cards = (
        ("An instructor", "kubectl apply -f deployment.yaml"),
        ("The stock kube-scheduler", "CPU, memory, licences, affinity"),
        ("A learner", "kubectl exec seat-2 -c r1 -- show arp"),
    )
    parts: list[str] = []
    for index, (title, words) in enumerate(cards):
        x = 20 + 312 * index
        parts += [rect(x, 20, 296, 62, "card"), text(x + 14, 44, title, "head")]
        parts += [text(x + 14, 66, words, "small" if index == 1 else "code")]
        parts += [line((x + 148, 84), (x + 148, 112), "arrow")]
    return parts


def _worker(x: int, worker: str, seats: tuple[_Seat, ...]) -> list[str]:
    """Draw a Node with its Pods above the worker with its labs, and which belong together."""
    parts = [line((x + 78 + 136 * index, 272), (x + 78 + 136 * index, 430), "pair") for index in range(len(seats))]
    parts += [rect(x, 154, 438, 128, "node"), text(x + 14, 177, f"Node vnode.{worker}", "code")]
    parts += [text(x + 424, 177, "Ready", "good end")]
    parts += [rect(x, 394, 438, 186, "worker"), text(x + 14, 417, f"CML worker {worker}", "head")]
    for index, seat in enumerate(seats):
        parts += _seat(x + 14 + 136 * index, seat)
    return parts


def _seat(x: int, seat: _Seat) -> list[str]:
    """Draw a Pod, and below it the lab of that Pod."""
    devices, links = _SHAPES[seat.shape]
    done = seat.running == len(devices)
    said, style = ("1/1  Running", "good") if done else (f"{seat.running} of {len(devices)} booted", "wait")
    parts = [rect(x, 192, 128, 76, "pod"), text(x + 12, 214, "Pod", "small"), text(x + 12, 234, seat.pod, "code")]
    parts += [dot(x + 16, 252, "up" if done else "booting", 4), text(x + 26, 256, said, style)]
    parts += [rect(x, 430, 128, 136, "lab"), text(x + 12, 452, "Lab of", "small"), text(x + 54, 452, seat.pod, "code")]
    places = [(x + 4 + dx, 462 + dy) for dx, dy in devices]
    parts += [line(places[one], places[other], "wire") for one, other in links]
    parts += [dot(*place, "up" if at < seat.running else "booting", 9) for at, place in enumerate(places)]
    return [*parts, text(x + 12, 554, "STARTED" if done else "BOOTING", style)]
