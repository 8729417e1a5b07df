"""The generated CRDs: structural, documented, and equal to the shipped files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from vkprovider.cli.crds import files
from vkprovider.lablet.models import crd

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


def test_the_files_are_plain_yaml_that_says_the_same() -> None:
    assert [yaml.safe_load(text) for text in files().values()] == list(crd.crds())
    assert all("&id" not in text for text in files().values())


def test_columns_show_fields_that_exist() -> None:
    """`kubectl get cmlw` and `kubectl get ldef` read well."""
    for kind, found in BY_KIND.items():
        known = {path for path, _ in walk(schema_of(kind))} | {".metadata.creationTimestamp", ".status.resources"}
        for column in found["spec"]["versions"][0]["additionalPrinterColumns"]:
            path = column["jsonPath"].split("[?")[0]
            parent = path if path in known else path.rsplit(".", 1)[0]
            assert path in known or parent.startswith(".status.resources"), column
