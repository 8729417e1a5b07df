"""Custom resource definitions, generated from the models.

`x-kubernetes-*` extensions and descriptions come from the fields themselves; pydantic's JSON schema is made structural
(references inlined, unions with null dropped), as apiextensions.k8s.io/v1 demands.
"""

from typing import Any, Final

import msgspec

from vkprovider.lablet import names
from vkprovider.lablet.models.definition import LabletDefinitionSpec
from vkprovider.lablet.models.fields import Model
from vkprovider.lablet.models.status import DefinitionStatus, Status, WorkerStatus
from vkprovider.lablet.models.worker import CMLWorkerSpec
from vkprovider.platform import wellknown

_STRING: Final = {"type": "string"}
_NOT_SEEN: Final = {"observedGeneration": -1}
"""The status of an object that the provider has not seen: Flux, Helm and all that use kstatus wait for it then.

https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus: an object without status counts as current."""


def structural(model: type[Model | Status]) -> dict[str, Any]:
    """Make the structural schema of a spec, or of a status: that has no defaults, which the API server would write."""
    schema = msgspec.json.schema(model) if issubclass(model, msgspec.Struct) else model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    if issubclass(model, msgspec.Struct):
        for definition in definitions.values():
            for field in definition["properties"].values():
                field.pop("default", None)
    result = _structural(schema, definitions)
    assert isinstance(result, dict)  # noqa: S101 (a dict in gives a dict out)
    return result


def _structural(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_structural(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        target = definitions[schema["$ref"].rsplit("/", 1)[1]]
        return _structural({**target, **{k: v for k, v in schema.items() if k != "$ref"}}, definitions)
    if "anyOf" in schema:
        options = [o for o in schema["anyOf"] if o.get("type") != "null"]
        rest = {k: v for k, v in schema.items() if k not in {"anyOf", "default"} or (k == "default" and v is not None)}
        return _structural({**options[0], **rest}, definitions)
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            result[key] = {name: _structural(item, definitions) for name, item in value.items()}
        elif (
            (key in {"title", "additionalProperties"} and not isinstance(value, dict))
            or (key == "default" and value is None)
            or (key == "required" and not value)
        ):
            continue
        elif key == "const":
            result["enum"] = [value]
        else:
            result[key] = _structural(value, definitions)
    if result.get("x-kubernetes-int-or-string"):
        result.pop("type", None)
        result.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    return result


def _crd(
    kind: str, plural: str, short: str, spec: type[Model], status: type[Status], columns: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{wellknown.GROUP}", "labels": {wellknown.LABEL_MANAGED_BY: wellknown.MANAGER}},
        "spec": {
            "group": wellknown.GROUP,
            "scope": "Cluster",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short],
                "categories": [wellknown.MANAGER],
            },
            "versions": [
                {
                    "name": wellknown.VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "description": spec.__doc__,
                            "required": ["spec"],
                            "properties": {
                                "apiVersion": _STRING,
                                "kind": _STRING,
                                "metadata": {"type": "object"},
                                "spec": structural(spec),
                                "status": {**structural(status), "default": _NOT_SEEN},
                            },
                        }
                    },
                }
            ],
        },
    }


def _column(name: str, path: str, type_: str = "string", *, priority: int = 0) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "type": type_, "jsonPath": path}
    return {**column, "priority": priority} if priority else column


def crds() -> list[dict[str, Any]]:
    """Make all custom resource definitions."""
    ready = '.status.conditions[?(@.type=="Ready")].'
    return [
        _crd(
            "CMLWorker",
            "cmlworkers",
            "cmlw",
            CMLWorkerSpec,
            WorkerStatus,
            [
                _column("Ready", ready + "status"),
                _column("Reason", ready + "reason"),
                _column("Version", ".status.cmlVersion"),
                _column("Labs", ".status.labs.ours", "integer"),
                _column("Foreign", ".status.labs.foreign", "integer"),
                _column("Env", ".spec.environment"),
                _column("Owner", ".status.owner"),
                _column("Age", ".metadata.creationTimestamp", "date"),
                _column("URL", ".spec.url", priority=1),
                _column("Address", ".spec.address", priority=1),
                _column("Epoch", ".status.epoch", "integer", priority=1),
                _column("Turned-Away", '.status.conditions[?(@.type=="AgentTurnedAway")].reason', priority=1),
                _column("Message", ready + "message", priority=1),
            ],
        ),
        _crd(
            "LabletDefinition",
            "labletdefinitions",
            "ldef",
            LabletDefinitionSpec,
            DefinitionStatus,
            [
                _column("Ready", ready + "status"),
                _column("Reason", ready + "reason"),
                _column("Version", ".status.version"),
                _column("CPU", ".status.resources.cpu"),
                _column("Memory", ".status.resources.memory"),
                _column("Lab-Nodes", f".status.resources.{names.RESOURCE_LAB_NODES.replace('.', chr(92) + '.')}"),
                _column("Env", ".spec.environment"),
                _column("Age", ".metadata.creationTimestamp", "date"),
                _column("Message", ready + "message", priority=1),
            ],
        ),
    ]
