"""Topologies and LabletDefinitions for tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

TEST_LAB = (Path(__file__).parent / "test-lab.yaml").read_text()
"""A lab as CML exports it, with every kind of tag and a device for each rule of visibility."""


def topology(devices: Mapping[str, str], tags: Mapping[str, Sequence[str]] | None = None, title: str = "test") -> str:
    """Make the YAML of a lab from labels and node definitions: `{"h0": "alpine", "r1": "iosv"}`; no links."""
    nodes = [
        {
            "id": f"n{number}",
            "label": label,
            "node_definition": definition,
            "x": 100 * number,
            "y": 0,
            "configuration": f"hostname {label}",
            "tags": list((tags or {}).get(label, [])),
            "interfaces": [{"id": f"i{number}", "label": "eth0", "slot": 0, "type": "physical"}],
        }
        for number, (label, definition) in enumerate(devices.items())
    ]
    lab = {"version": "0.1.0", "title": title, "description": "", "notes": ""}
    return yaml.safe_dump({"lab": lab, "nodes": nodes, "links": []}, sort_keys=False)


def definition(name: str, inline: str | None = None, *, version: str = "1.0.0", **spec: Any) -> dict[str, Any]:
    """Make a LabletDefinition; without a topology it has one `alpine` host, `h0`. `spec`: further fields."""
    source = {"inline": topology({"h0": "alpine"}) if inline is None else inline}
    return {
        "apiVersion": "vkprovider.io/v1alpha1",
        "kind": "LabletDefinition",
        "metadata": {"name": name},
        "spec": {"version": version, "source": source, **spec},
    }


def pod_template(
    name: str,
    *,
    version: str = "",
    labels: Mapping[str, str] | None = None,
    devices: Sequence[str] = (),
    typed: bool = False,
    **spec: Any,
) -> dict[str, Any]:
    """Make the template of a lablet's Pod: `metadata` with labels, and `spec`.

    Args:
        name: The definition's.
        version: Of its content.
        labels: Of the Pod.
        devices: Further containers.
        typed: Whether `kubectl attach -it` may reach the containers.
        spec: Further fields.
    """
    image = f"{name}:{version}" if version else name
    requests = {"requests": {"cpu": "1m", "memory": "1Mi"}}
    terminal = {"stdin": True, "tty": True} if typed else {}
    containers = [
        {"name": container, "image": image, "resources": requests, **terminal} for container in ("lab", *devices)
    ]
    return {
        "metadata": {"labels": dict(labels or {"app": name})},
        "spec": {"runtimeClassName": name, "containers": containers, **spec},
    }


def pod(
    name: str, definition_name: str, *, version: str = "", devices: Sequence[str] = (), **spec: Any
) -> dict[str, Any]:
    """Make a lablet's Pod."""
    template = pod_template(definition_name, version=version, devices=devices, **spec)
    template["metadata"]["name"] = name
    return {"apiVersion": "v1", "kind": "Pod", **template}


def deployment(name: str, definition_name: str, replicas: int, *, version: str = "", **spec: Any) -> dict[str, Any]:
    """Make a Deployment of lablets; `spec` goes to its Pods."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": pod_template(definition_name, version=version, labels=labels, **spec),
        },
    }
