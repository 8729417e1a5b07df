"""CML's answers as slim frozen structs: the fields we use, everything else is skipped while decoding.

A tolerant reader: only what identifies an object is required; a field that a version lacks has its default. Shapes
are of CML 2.9's OpenAPI document. States are CML's own words, passed through verbatim, unknown ones too.
"""

import msgspec


class CmlSystemInformation(msgspec.Struct, frozen=True, gc=False):
    """`GET /system_information`: `{"version": "2.9.1+build.7", "ready": true, …}`."""

    version: str
    ready: bool = True


class CmlLabInfo(msgspec.Struct, frozen=True, gc=False):
    """A lab in short."""

    id: str
    lab_title: str = ""
    state: str = ""
    node_count: int = 0
    owner_username: str | None = None


class CmlLabDetail(msgspec.Struct, frozen=True, gc=False):
    """A lab, `GET /labs/{lab}`: `{"id": "…", "lab_title": "netlab-…", "state": "STARTED", "lab_notes": "…", …}`.

    Attributes:
        created: ISO 8601 with offset, `2025-12-06T11:11:28+00:00`.
        owner: The user's id.
    """

    id: str
    lab_title: str = ""
    lab_notes: str = ""
    lab_description: str = ""
    state: str = ""
    created: str | None = None
    owner: str | None = None
    owner_username: str | None = None
    node_count: int = 0


class CmlNode(msgspec.Struct, frozen=True, gc=False):
    """A node, `GET /labs/{lab}/nodes?data=true`: `{"id": "…", "label": "r1", "state": "BOOTED", …}`."""

    id: str
    lab_id: str = ""
    label: str = ""
    node_definition: str = ""
    state: str = ""
    boot_progress: str | None = None
    tags: tuple[str, ...] = ()


class CmlNodeRow(msgspec.Struct, frozen=True, gc=False):
    """A node as the bulk observation `GET /nodes` needs it; `lab_id` is required there."""

    id: str
    lab_id: str
    label: str
    node_definition: str
    state: str


class CmlNodeState(msgspec.Struct, frozen=True, gc=False):
    """`GET …/nodes/{node}/state`: `{"state": "BOOTED", "progress": "Booted"}`."""

    state: str
    progress: str | None = None


class CmlConfigurationFile(msgspec.Struct, frozen=True, gc=False):
    """One named file of a node's configuration."""

    name: str
    content: str | None = None


class CmlNodeConfiguration(msgspec.Struct, frozen=True, gc=False):
    """The configuration of `GET …/nodes/{node}?exclude_configurations=false`: a text or named files."""

    configuration: str | tuple[CmlConfigurationFile, ...] | None = None

    def text(self) -> str:
        """Return one text; several files each follow a line `### name`."""
        if self.configuration is None or isinstance(self.configuration, str):
            return self.configuration or ""
        if len(self.configuration) == 1:
            return self.configuration[0].content or ""
        return "".join(f"### {file.name}\n{(file.content or '').rstrip()}\n" for file in self.configuration)


class CmlNodeUsage(msgspec.Struct, frozen=True, gc=False):
    """What a node uses: CPU in percent of a core."""

    cpu_usage: float | None = None


class CmlSimulationStats(msgspec.Struct, frozen=True, gc=False):
    """`GET /labs/{lab}/simulation_stats`: `{"nodes": {"<id>": {"cpu_usage": 1.2, …}}, "links": {…}}`."""

    nodes: dict[str, CmlNodeUsage] = {}


class CmlLink(msgspec.Struct, frozen=True, gc=False):
    """A link, `GET /labs/{lab}/links?data=true`: `{"id": "…", "label": "r1-eth0<->r2-eth0", "node_a": "…", …}`.

    Attributes:
        link_capture_key: Of its capture; empty without one.
    """

    id: str
    label: str = ""
    node_a: str = ""
    node_b: str = ""
    link_capture_key: str | None = None


class CmlCaptureConfig(msgspec.Struct, frozen=True, gc=False):
    """What a capture was started with: `{"link_capture_key": "…", "maxpackets": 50, "maxtime": 60, …}`."""

    link_capture_key: str | None = None


class CmlCaptureStatus(msgspec.Struct, frozen=True, gc=False):
    """`GET …/capture/status`: `{"config": {…}, "starttime": "…", "packetscaptured": 8}`; all empty if none runs."""

    config: CmlCaptureConfig | None = None
    starttime: str | None = None
    packetscaptured: int | None = None


class CmlImport(msgspec.Struct, frozen=True, gc=False):
    """`POST /import`: `{"id": "<lab id>", "warnings": ["Unknown node definition: acme"]}`, or null for no warnings."""

    id: str
    warnings: tuple[str, ...] | None = None


class CmlError(msgspec.Struct, frozen=True, gc=False):
    """Every error of CML: `{"code": 404, "description": "Lab not found: <id>"}`."""

    code: int
    description: str
