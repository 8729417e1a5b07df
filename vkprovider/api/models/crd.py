"""Custom resource definitions, generated from the models.

`x-kubernetes-*` extensions and descriptions come from the fields themselves; pydantic's JSON schema is made structural
(references inlined, unions with null dropped), as apiextensions.k8s.io/v1 demands.
"""

from typing import Any, Final

from vkprovider.api import names
from vkprovider.api.models.definition import LabletDefinitionSpec
from vkprovider.api.models.fields import Model
from vkprovider.api.models.worker import CMLWorkerSpec

_CONDITIONS: Final[dict[str, Any]] = {
    "type": "array",
    "description": "What is true of the object now.",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": {"type": "string", "description": "What the condition is about."},
            "status": {
                "type": "string",
                "enum": ["True", "False", "Unknown"],
                "description": "Whether it holds.",
            },
            "reason": {"type": "string", "description": "Why, in one word."},
            "message": {"type": "string", "description": "Why, and what to do about it."},
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "description": "Generation of the spec that it is about.",
            },
            "lastTransitionTime": {
                "type": "string",
                "format": "date-time",
                "description": "When the status last changed.",
            },
        },
    },
}
_STRING: Final = {"type": "string"}
_INTEGER: Final = {"type": "integer", "format": "int64"}


def _object(description: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "description": description, "properties": properties}


WORKER_STATUS: Final = _object(
    "What the provider knows of the worker.",
    conditions=_CONDITIONS,
    observedGeneration={**_INTEGER, "description": "Generation of the spec that the status is about."},
    node={**_STRING, "description": "Name of the Node."},
    cmlVersion={**_STRING, "description": "Version that CML reports."},
    identity={
        "type": "array",
        "description": "What tells its CML controller from others: two CMLWorkers with one of these in common are one.",
        "items": _STRING,
    },
    owner={**_STRING, "description": "Replica that acts for the worker."},
    epoch={**_INTEGER, "description": "How often the worker changed its owner."},
    labs=_object(
        "Labs on the worker.",
        ours={**_INTEGER, "description": "Labs of this installation."},
        foreign={**_INTEGER, "description": "Labs of others, never touched."},
    ),
)

DEFINITION_STATUS: Final = _object(
    "What the provider made of the definition.",
    conditions=_CONDITIONS,
    observedGeneration={**_INTEGER, "description": "Generation of the spec that the status is about."},
    refresh={**_STRING, "description": "The refresh request that was last served, as annotated."},
    source={**_STRING, "description": "Names what was read: SHA-256 of version and source in the spec."},
    lastRefresh=_object(
        "What became of the last refresh.",
        request={**_STRING, "description": "The request, as annotated; empty if the definition itself was changed."},
        requestedBy={**_STRING, "description": "Who asked for it; empty if unknown."},
        time={"type": "string", "format": "date-time", "description": "When it was served."},
        result={
            "type": "string",
            "enum": ["Stored", "Unchanged", "Refused"],
            "description": "Whether new content was stored; a refused one changes nothing.",
        },
        version={**_STRING, "description": "Version of the content that was read."},
        devices={**_INTEGER, "description": "How many devices it has."},
    ),
    refused=_object(
        "Content that is wrong by itself; it is not parsed again until it changes.",
        digest={**_STRING, "description": "Names the content."},
        provider={**_STRING, "description": "Release of the provider that refused it; another one parses it again."},
    ),
    version={**_STRING, "description": "Version that a new lablet gets."},
    versions={
        "type": "array",
        "description": "Versions kept, newest first.",
        "items": _object(
            "One version of the content.",
            version={**_STRING, "description": "Its name, the tag of an image."},
            digest={**_STRING, "description": "Names the content: SHA-256 of definition, version and all files."},
            files={"type": "array", "items": _STRING, "description": "What is stored beside the topology."},
            refreshedBy={**_STRING, "description": "Who asked for it; empty if unknown."},
            refreshedAt={"type": "string", "format": "date-time", "description": "When it was stored."},
            resources={
                "type": "object",
                "description": "What one lablet of this version needs.",
                "additionalProperties": _STRING,
            },
        ),
    },
    devices={
        "type": "array",
        "description": "Devices of the newest version, the first 500.",
        "items": _object(
            "One device.",
            label={**_STRING, "description": "Its label in the topology."},
            container={**_STRING, "description": "Name of the container that stands for it."},
            nodeDefinition={**_STRING, "description": "Its node definition."},
            imageDefinition={
                **_STRING,
                "description": "Its image definition; missing where the node definition decides.",
            },
            visible={"type": "boolean", "description": "Whether learners see it."},
        ),
    },
    portTemplate={
        "type": "array",
        "description": "Ports that a lablet of the newest version gets, the first 500.",
        "items": _object(
            "One port.",
            name={**_STRING, "description": "Its name in `port-mappings`."},
            device={**_STRING, "description": "Label of the device that is reached by it."},
            container={**_STRING, "description": "Name of the container that stands for the device."},
            protocol={**_STRING, "description": "Its transport protocol, tcp or udp."},
            tag={**_STRING, "description": "The tag that requests it."},
            opened={"type": "boolean", "description": "Whether CML opens it; false for http, https, ssh, telnet, tcp."},
        ),
    },
    resources={
        "type": "object",
        "description": "What one lablet is charged, as in the RuntimeClass.",
        "additionalProperties": _STRING,
    },
)


def structural(model: type[Model]) -> dict[str, Any]:
    """Make the structural schema of a model."""
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
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
        elif (key in {"title", "additionalProperties"} and not isinstance(value, dict)) or (
            key == "default" and value is None
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
    kind: str, plural: str, short: str, spec: type[Model], status: dict[str, Any], columns: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{names.GROUP}", "labels": {names.LABEL_MANAGED_BY: names.MANAGER}},
        "spec": {
            "group": names.GROUP,
            "scope": "Cluster",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short],
                "categories": [names.MANAGER],
            },
            "versions": [
                {
                    "name": names.VERSION,
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
                                "status": status,
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
            WORKER_STATUS,
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
            DEFINITION_STATUS,
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
