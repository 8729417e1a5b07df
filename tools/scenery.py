"""What the pictures of the portal show: a lab of four devices, a pool of a class, and whose image its schedules run."""

import json
from typing import Any, Final

from vkpsandbox.controlplane.content import NAMESPACE

CLASS: Final = "net101"
"""The namespace of the class."""
_CLASS_SIZE: Final = 8
_IMAGE: Final = "registry.example.com/vkprovider:0.2.0"
_DEVICES: Final = {"r1": ("iosv", 0, 0), "r2": ("iosv", 300, 0), "pc1": ("alpine", 0, 160), "pc2": ("alpine", 300, 160)}
_LINKS: Final = (("r1", "r2"), ("r1", "pc1"), ("r2", "pc2"))
_SCREENS: Final = ("pc1",)


def definition() -> dict[str, Any]:
    """Return a lab of four devices, on the menu."""
    number = {label: index for index, label in enumerate(_DEVICES)}
    ends = {label: [link for link in _LINKS if label in link] for label in _DEVICES}
    nodes = [
        {
            "id": f"n{number[label]}",
            "label": label,
            "node_definition": kind,
            "x": x,
            "y": y,
            "tags": [f"serial:{4000 + number[label]}", *(["vnc:5900"] if label in _SCREENS else [])],
            "interfaces": [
                {"id": f"i{number[label]}{slot}", "label": f"eth{slot}", "slot": slot, "type": "physical"}
                for slot in range(len(ends[label]))
            ],
        }
        for label, (kind, x, y) in _DEVICES.items()
    ]
    links = [
        {
            "id": f"l{index}",
            "n1": f"n{number[one]}",
            "i1": f"i{number[one]}{ends[one].index(link)}",
            "n2": f"n{number[other]}",
            "i2": f"i{number[other]}{ends[other].index(link)}",
        }
        for index, link in enumerate(_LINKS)
        for one, other in [link]
    ]
    lab = {"version": "0.1.0", "title": "two routers", "description": "", "notes": ""}
    return {
        "apiVersion": "vkprovider.io/v1alpha1",
        "kind": "LabletDefinition",
        "metadata": {"name": "routing", "labels": {"vkprovider.io/family": "routing", "vkprovider.io/size": "small"}},
        "spec": {"version": "1.0.0", "source": {"inline": json.dumps({"lab": lab, "nodes": nodes, "links": links})}},
    }


def lablet(name: str, image: str, annotations: dict[str, str]) -> dict[str, Any]:
    """Return a lablet's Pod, with a container for each device."""
    containers = [{"name": each, "image": image} for each in ("lab", *_DEVICES)]
    spec = {"runtimeClassName": "routing", "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}, "spec": spec}


def pool() -> dict[str, Any]:
    """Return a pool of lablets, each with a container for each device."""
    labels = {"vkprovider.io/pool": "warm"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "warm", "namespace": CLASS},
        "spec": {
            "replicas": _CLASS_SIZE,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": lablet("", "routing:1.0.0", {})["spec"]},
        },
    }


def installed() -> dict[str, Any]:
    """Return the Deployment of the provider, whose image `grant` names to a class; nothing runs by it here."""
    labels = {"app.kubernetes.io/name": "vkprovider"}
    containers = [{"name": "provider", "image": _IMAGE}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "vkprovider", "namespace": NAMESPACE},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }
