"""The reference pages of what people write as YAML: custom resources and files of programs, made from their models."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tools.markdown import NOTE, table
from vkprovider.lablet.models.crd import crds, structural
from vkprovider.portal.pure.config import PortalConfig
from vkprovider.prepull.config import PrepullConfig

_HEAD: Final = """\
# Custom resources

Both are cluster-scoped, of the API group `vkprovider.io/v1alpha1`. `kubectl explain cmlworker.spec` says the same. A
field in **bold** must be given; `[]` after a name means a list, `*` stands for a key of one's own.
"""
_FILES: Final = """\
# Files of the portal and of prepull

`[]` after a name means a list, `*` stands for a key of one's own, and a field in **bold** must be given where what it
belongs to is there. A file with a field that is not here, or with a wrong value, ends the program with a message that
names it.

## The file of VKPROVIDER_PORTAL_CONFIG

[portal.md](../portal.md#how-long-a-lab-lasts-and-what-is-kept-ready) has an example, [workbench.md](../workbench.md)
one of workbenches.

{portal}
## The file of vkprovider prepull

[prepull.md](../prepull.md) has an example.

{prepull}"""
_LIMITS: Final[Mapping[str, str]] = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "minLength": "{} characters or more",
    "maxLength": "{} characters or fewer",
    "minItems": "{} items or more",
    "maxItems": "{} items or fewer",
    "maxProperties": "{} entries or fewer",
    "pattern": "`{}`",
}


def crds_page() -> str:
    """Describe every field of every custom resource."""
    return NOTE.format(source="vkprovider/lablet/models or crd.py") + _HEAD + "".join(map(_section, crds()))


def files_page() -> str:
    """Describe every field of the file of the portal, and of that of `vkprovider prepull`."""
    head = ("Field", "Type", "Default", "Allowed", "What it is")
    tables = {
        name: table([head, *_rows(structural(model), "")])
        for name, model in (("portal", PortalConfig), ("prepull", PrepullConfig))
    }
    return NOTE.format(source="vkprovider/portal/pure/config.py, workbench.py or vkprovider/prepull/config.py") + (
        _FILES.format(**tables)
    )


def _section(crd: dict[str, Any]) -> str:
    words, version = crd["spec"]["names"], crd["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    about = " ".join(str(schema.get("description", "")).split())
    parts = [f"\n## {words['kind']}\n\n{about} Short name: `{words['shortNames'][0]}`.\n"]
    for part in ("spec", "status"):
        fields = schema["properties"][part]
        rows = [("Field", "Type", "Default", "Allowed", "What it is"), *_rows(fields, f"{part}.")]
        parts.append(f"\n### {words['kind']} {part}\n\n{table(rows)}")
        parts += [f"\n- {rule['message']}: `{rule['rule']}`" for rule in fields.get("x-kubernetes-validations", ())]
    columns = ", ".join(column["name"] for column in version["additionalPrinterColumns"] if not column.get("priority"))
    wide = ", ".join(column["name"] for column in version["additionalPrinterColumns"] if column.get("priority"))
    return "".join([*parts, f"\nColumns of `kubectl get`: {columns}; with `-o wide` also {wide}.\n"])


def _rows(schema: dict[str, Any], prefix: str) -> Iterator[tuple[str, ...]]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        path = f"`{prefix}{name}`"
        yield (
            f"**{path}**" if name in required else path,
            _type(field),
            f"`{field['default']}`" if _tells(field) else "",
            ", ".join(_limits(field)),
            " ".join(str(field.get("description", "")).split()),
        )
        yield from _rows(field, f"{prefix}{name}.")
        if isinstance(items := field.get("items"), dict):
            yield from _rows(items, f"{prefix}{name}[].")
        for values in (field.get("additionalProperties"), *field.get("patternProperties", {}).values()):
            if isinstance(values, dict):
                yield from _rows(values, f"{prefix}{name}.*.")


def _tells(field: dict[str, Any]) -> bool:
    """Return whether a field has a default that rows of its own fields do not have."""
    return field.get("default") not in (None, {}, [], "") and "properties" not in field


def _type(field: dict[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    return str(field.get("type", "any"))


def _limits(field: dict[str, Any]) -> Iterator[str]:
    """Describe in words what a field accepts, beyond its type."""
    yield from (f"`{choice}`" for choice in field.get("enum", ()))
    yield from (text.format(field[key]) for key, text in _LIMITS.items() if key in field)
    yield from (f"`{rule['rule']}`" for rule in field.get("x-kubernetes-validations", ()))
