"""The generated CRDs: structural, documented, and equal to the shipped files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from vkprovider.api import names
from vkprovider.api.models import crd
from vkprovider.cli.crds import files

MANIFESTS = Path(__file__).parents[3] / "manifests" / "crds"
BY_KIND = {found["spec"]["names"]["kind"]: found for found in crd.crds()}


def schema_of(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = BY_KIND[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema in a schema, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from walk(inner, f"{path}.{name}")
    for part in ("items", "additionalProperties"):
        if part in schema:
            yield from walk(schema[part], f"{path}[]")


EVERY = [(kind, path, inner) for kind in BY_KIND for path, inner in walk(schema_of(kind))]
SPEC_AND_STATUS = [(k, p, s) for k, p, s in EVERY if p.startswith((".spec", ".status")) and not p.endswith("[]")]


def test_the_shipped_files_are_the_generated_ones() -> None:
    for name, text in files().items():
        assert (MANIFESTS / name).read_text() == text, f"run `vkprovider crds --write {MANIFESTS}`"
    assert {p.name for p in MANIFESTS.glob("*.vkprovider.io.yaml")} == set(files())


def test_the_files_are_plain_yaml_that_says_the_same() -> None:
    assert [yaml.safe_load(text) for text in files().values()] == list(crd.crds())
    assert all("&id" not in text for text in files().values())


@pytest.mark.parametrize(("kind", "path", "schema"), EVERY, ids=lambda v: v if isinstance(v, str) else "")
def test_every_schema_is_structural(kind: str, path: str, schema: dict[str, Any]) -> None:
    """The rules of apiextensions.k8s.io/v1 for structural schemas."""
    where = f"{kind}{path}"
    assert not schema.keys() & {
        "$ref",
        "$defs",
        "title",
        "const",
        "allOf",
        "oneOf",
        "not",
        "examples",
        "definitions",
    }, where
    if schema.get("x-kubernetes-int-or-string"):
        assert "type" not in schema, where
        assert schema["anyOf"] == [{"type": "integer"}, {"type": "string"}], where
    else:
        assert "anyOf" not in schema, where
        assert schema["type"] in {"object", "array", "string", "integer", "boolean", "number"}, where
    assert not ("properties" in schema and "additionalProperties" in schema), where
    assert schema.get("additionalProperties", {}) is not False, where
    assert schema.get("default", "") is not None, where
    assert set(schema.get("required", ())) <= set(schema.get("properties", ())), where
    if schema.get("type") == "array":
        assert "items" in schema, where


@pytest.mark.parametrize(("kind", "path", "schema"), SPEC_AND_STATUS, ids=lambda v: v if isinstance(v, str) else "")
def test_every_property_is_described(kind: str, path: str, schema: dict[str, Any]) -> None:
    text = schema.get("description", "")
    assert text.endswith("."), f"{kind}{path}: {text!r}"


@pytest.mark.parametrize(
    ("kind", "plural", "short"),
    [("CMLWorker", "cmlworkers", "cmlw"), ("LabletDefinition", "labletdefinitions", "ldef")],
)
def test_names_and_scope(kind: str, plural: str, short: str) -> None:
    found = BY_KIND[kind]
    assert found["metadata"]["name"] == f"{plural}.{names.GROUP}"
    assert found["spec"]["scope"] == "Cluster"
    assert found["spec"]["names"]["shortNames"] == [short]
    (version,) = found["spec"]["versions"]
    assert (version["name"], version["subresources"]) == ("v1alpha1", {"status": {}})


def test_columns_show_fields_that_exist() -> None:
    """`kubectl get cmlw` and `kubectl get ldef` read well."""
    for kind, found in BY_KIND.items():
        known = {path for path, _ in walk(schema_of(kind))} | {".metadata.creationTimestamp", ".status.resources"}
        for column in found["spec"]["versions"][0]["additionalPrinterColumns"]:
            path = column["jsonPath"].split("[?")[0]
            parent = path if path in known else path.rsplit(".", 1)[0]
            assert path in known or parent.startswith(".status.resources"), column


def test_fields_are_in_camel_case_and_limits_are_kept() -> None:
    spec = schema_of("CMLWorker")["properties"]["spec"]["properties"]
    assert set(spec["portRange"]["properties"]) == {"start", "end"}
    assert (spec["portRange"]["properties"]["start"]["minimum"], spec["portRange"]["required"]) == (1, ["start", "end"])
    assert spec["nodeLabels"]["additionalProperties"] == {"type": "string"}
    assert spec["tunnel"]["enum"] == ["direct", "mqtt", "http"]
    assert spec["capacity"]["properties"]["labNodes"]["minimum"] == 0
    assert "default" not in spec["capacity"]["properties"]["labNodes"]


def test_the_environment_cannot_be_changed() -> None:
    environment = schema_of("CMLWorker")["properties"]["spec"]["properties"]["environment"]
    (rule,) = environment["x-kubernetes-validations"]
    assert rule["rule"] == "self == oldSelf"
    assert environment["default"] == "default", "a transition rule needs an old value"
