"""`LabletDefinition`: what a lablet is, a topology and the terms on which it runs."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

import pydantic
from pydantic import ConfigDict, Field

from vkprovider.lablet.models.fields import (
    BUCKET,
    KEY,
    LATEST,
    MUX,
    NAMESPACE,
    OBJECT_KEY,
    OBJECT_KEY_RE,
    OBJECT_NAME,
    VERSION_CHARS_MAX,
    VERSION_PATTERN,
    Model,
    Quantity,
    parse,
)
from vkprovider.lablet.models.parameters import PARAMETERS_MAX, ParameterSpec

INLINE_CHARS_MAX: Final = 1_000_000
"""An object may have 1.5 MiB in etcd."""


class ConfigMapSource(Model):
    """A topology in a ConfigMap."""

    namespace: str = Field(description="Namespace of the ConfigMap.", max_length=63, pattern=NAMESPACE)
    name: str = Field(description="Name of the ConfigMap.", max_length=253, pattern=OBJECT_NAME)
    key: str = Field("cml.yaml", description="Key that holds the topology.", max_length=253, pattern=KEY)


class ObjectStoreSource(Model):
    """A content package, a zip, in the object store of the provider's settings. It is read only on request."""

    bucket: str | None = Field(
        None,
        description="Bucket, or folder, instead of that in the setting `VKPROVIDER_CONTENT_STORE`.",
        pattern=BUCKET,
    )
    key: str | None = Field(
        None,
        description="Name of the package in it; `formQualifiedName` with `.zip` if unset.",
        max_length=1024,
        pattern=OBJECT_KEY,
    )


class SourceSpec(Model):
    """Where the topology comes from: exactly one of the fields."""

    inline: str | None = Field(
        None,
        description="The topology itself, as CML exports it. One that is larger than etcd takes goes into a content "
        "package: see `objectStore`.",
        max_length=INLINE_CHARS_MAX,
    )
    config_map: ConfigMapSource | None = Field(None, description="A ConfigMap that holds it.")
    object_store: ObjectStoreSource | None = Field(None, description="A content package that holds it.")

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        if sum(source is not None for source in (self.inline, self.config_map, self.object_store)) != 1:
            raise ValueError("set exactly one of inline, configMap and objectStore")
        return self


class ResourcesSpec(Model):
    """Overrides of what one lablet is charged; what is unset is computed from the topology."""

    cpu: Quantity | None = Field(None, description="Cores.")
    memory: Quantity | None = Field(None, description="Memory.")
    lab_nodes: int | None = Field(None, ge=0, description="Licensed devices.")
    ports: int | None = Field(None, ge=0, description="External ports.")


class LdsSpec(Model):
    """How the Lab Delivery System takes part."""

    enabled: bool = Field(default=True, description="Whether a session is provisioned where an LDS is configured.")
    affinity: str | None = Field(None, description="Name of the LDS deployment to prefer.")


class ExposeSpec(Model):
    """Which ports of lablets are lent to a mux, behind whose address learners reach them."""

    mux: str = Field(
        description="The mux, a Service: `NAME.NAMESPACE`, or `NAME` for one in the default namespace of muxes.",
        max_length=127,
        pattern=MUX,
    )
    ports: list[Annotated[str, Field(min_length=1, max_length=253)]] | None = Field(
        None,
        description="Names of the ports, as status.portTemplate lists them; if unset, all that CML opens.",
        min_length=1,
        max_length=500,
    )
    lds: bool = Field(
        default=False,
        description="Whether the Lab Delivery System is told the mux's address and ports instead of the worker's.",
    )


class LabletDefinitionSpec(Model):
    """What a lablet is: a topology and the terms on which it runs."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "has(self.version) || has(self.source.objectStore)",
                    "message": "spec.version: Required value; only a content package may name a version of its own",
                },
                {
                    "rule": "!has(self.source.objectStore) || has(self.source.objectStore.key) || "
                    "has(self.formQualifiedName)",
                    "message": "set source.objectStore.key or formQualifiedName, which name the package",
                },
            ]
        }
    )

    version: str | None = Field(
        None,
        description="Version of the content; an image `NAME:VERSION` names it. Required, except with a content "
        "package that names its own.",
        min_length=1,
        max_length=VERSION_CHARS_MAX,
        pattern=VERSION_PATTERN,
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": f"self != '{LATEST}'",
                    "message": f"a version cannot be called {LATEST}, which in an image means the current version; "
                    "write it like 1.2.0",
                }
            ]
        },
    )
    environment: str = Field("default", description="Environment of the workers that may run it.")
    source: SourceSpec = Field(
        description="Where the topology comes from.",
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "[has(self.inline), has(self.configMap), has(self.objectStore)].exists_one(x, x)",
                    "message": "set exactly one of source.inline, source.configMap and source.objectStore",
                }
            ]
        },
    )
    form_qualified_name: str | None = Field(None, description="The form's name in the content system.")
    resources: ResourcesSpec = Field(default_factory=ResourcesSpec, description="Overrides of what is charged.")
    lds: LdsSpec = Field(default_factory=LdsSpec, description="How the Lab Delivery System takes part.")
    expose: ExposeSpec | None = Field(
        None, description="Which ports are lent to a mux; none if unset. Serial consoles ask for no login."
    )
    parameters: list[ParameterSpec] | None = Field(
        None,
        description="Variables of its lablets that the portal asks for; configurations have them as `$(NAME)`.",
        max_length=PARAMETERS_MAX,
    )
    device_secret_name: str | None = Field(
        None,
        description="Secret with the devices' credentials, in the namespace of logins and labelled "
        "`vkprovider.io/used-for: devices`.",
        max_length=253,
        pattern=OBJECT_NAME,
    )
    boot_timeout_seconds: int | None = Field(
        None,
        ge=60,
        le=86400,
        description="How long a device may take to boot, counted from its own start; then the lab is wiped and started "
        "again. Unset: 1.5 times CML's `boot.timeout` of the slowest device where a CMLWorker has `stats: On`, at "
        "least 300, else 1800. `LAB_START_TIMEOUT` of the provider goes before.",
    )
    keep_versions: int = Field(3, ge=1, le=20, description="How many versions of the content are kept.")
    unreachable_toleration_seconds: int | None = Field(
        None,
        ge=300,
        description="How long a lablet survives a silent worker; without limit if unset. At least 300, which admission "
        "gives every pod.",
    )

    @pydantic.field_validator("version")
    @classmethod
    def _check_version(cls, version: str | None) -> str | None:
        if version == LATEST:
            raise ValueError(f"a version cannot be called {LATEST}, which in an image means the current version")
        return version

    @pydantic.field_validator("parameters")
    @classmethod
    def _check_parameters(cls, parameters: list[ParameterSpec] | None) -> list[ParameterSpec] | None:
        found = [each.name for each in parameters or ()]
        if twice := next((name for name in found if found.count(name) > 1), ""):
            raise ValueError(f"{twice} is declared twice")
        return parameters

    @pydantic.model_validator(mode="after")
    def _check(self) -> Self:
        package = self.source.object_store
        if package is None:
            if self.version is None:
                raise ValueError("version is required; only a content package may name a version of its own")
        elif package.key is None:
            if not self.form_qualified_name:
                raise ValueError("set source.objectStore.key or formQualifiedName, which name the package")
            if not OBJECT_KEY_RE.match(self.package_key):
                raise ValueError(f"formQualifiedName {self.form_qualified_name[:80]!r} cannot name an object")
        return self

    @property
    def package_key(self) -> str:
        """Name of the content package in its bucket; empty if there is none."""
        package = self.source.object_store
        return "" if package is None else package.key or f"{self.form_qualified_name}.zip"


def parse_definition_spec(spec: object) -> LabletDefinitionSpec:
    """Validate a LabletDefinition's spec.

    Raises:
        InputError: `SpecInvalid`, with every field that is wrong.
    """
    return parse(LabletDefinitionSpec, spec)


_OF_VERSIONS: Final = ("environment", "resources", "keepVersions")
_UNREAD: Final = {"version": "unread", "source": {"inline": "unread"}}


def version_terms_of(spec: Mapping[str, Any]) -> LabletDefinitionSpec:
    """Read what stored versions need of a spec that is invalid; all else, and what is unreadable, counts as unset."""
    given = {key: spec[key] for key in _OF_VERSIONS if key in spec}
    try:
        return LabletDefinitionSpec.model_validate(_UNREAD | given)
    except pydantic.ValidationError as error:
        for each in error.errors(include_input=False):
            given.pop(str(each["loc"][0]), None)
        return LabletDefinitionSpec.model_validate(_UNREAD | given)
