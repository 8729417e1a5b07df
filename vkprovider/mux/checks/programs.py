"""A workload of a program, and where its settings stand."""

import msgspec

from vkprovider.doctor.reading import UserReading
from vkprovider.platform.objects import ConfigMap, Metadata


class _Variable(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _EnvFrom(msgspec.Struct, frozen=True, rename="camel"):
    config_map_ref: _Named = _Named()


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    env: tuple[_Variable, ...] = ()
    env_from: tuple[_EnvFrom, ...] = ()


class _PodSpec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()


class _Template(msgspec.Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Spec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


class Workload(msgspec.Struct, frozen=True):
    """A Deployment or DaemonSet."""

    metadata: Metadata
    spec: _Spec = _Spec()

    @property
    def config_maps(self) -> list[str]:
        """The names of the ConfigMaps that its containers take settings from."""
        sources = [source for container in self.spec.template.spec.containers for source in container.env_from]
        return sorted({source.config_map_ref.name for source in sources} - {""})


async def settings_of(reading: UserReading, workload: Workload, about: str) -> dict[str, str]:
    """Return the environment of the containers of a workload: their variables, and the ConfigMaps that they name."""
    settings: dict[str, str] = {}
    for name in workload.config_maps:
        path = f"/api/v1/namespaces/{workload.metadata.namespace}/configmaps/{name}"
        found = await reading.read(path, ConfigMap, about)
        settings |= found.data if found is not None else {}
    variables = [each for container in workload.spec.template.spec.containers for each in container.env]
    return settings | {each.name: each.value for each in variables if each.value}
