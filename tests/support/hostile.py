"""The table of all parsers of text from outside, each run over the hostile corpus.

`python -m tests.support.hostile PARSER SEED COUNT` runs it in a process of its own with limits on memory and on the CPU
time of each input, and prints one JSON line. Only a refusal with a reason may come out of a parser.
"""

import base64
import contextlib
import gzip
import io
import resource
import sys
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import yaml
from aiohttp import web
from msgspec import inspect
from multidict import CIMultiDict

from tests.support.hostile_corpus import BOMBS, VALUES, any_value, as_json, as_yaml, distorted, replaced
from tests.support.topologies import TEST_LAB, topology
from tunnels.base import Response
from vkprovider.cml import operations as cml_operations
from vkprovider.cml import wire
from vkprovider.cml.dialect import CmlDialect
from vkprovider.lablet.archives import Leftovers
from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.models.definition import parse_definition_spec
from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.labs.http import cloudevents
from vkprovider.labs.http.refusals import EventInvalid
from vkprovider.labs.lds import dialect as lds_operations
from vkprovider.labs.lds import wire as lds
from vkprovider.labs.lds.dialect import LdsDialect
from vkprovider.labs.pure.claims import document
from vkprovider.labs.pure.definition import content as contents
from vkprovider.labs.pure.definition import package, refresh
from vkprovider.labs.pure.lablet import leftovers
from vkprovider.labs.pure.session import inbox
from vkprovider.labs.pure.session.inbox import SessionEvents
from vkprovider.labs.pure.topology import topology as topologies
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.labs.settings.services import PackageSettings
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.http.answers import bearer
from vkprovider.platform.objects import ConfigMap, Metadata
from vkprovider.platform.packing import pack
from vkprovider.platform.ports import store as portstore
from vkprovider.rest.dialect import decode, error_of

MEMORY_BYTES: Final = 512 * 2**20
CPU_S: Final = 10.0
"""CPU time of one input; most take a millisecond."""
LIMITS: Final = PackageSettings(package_bytes_max=2**20, unpacked_bytes_max=2**22, file_bytes_max=2**20, files_max=100)
REFUSALS: Final = (InputError, OutsideError, web.HTTPException)

SMALL: Final = topology({"PC": "ubuntu", "R1": "iosv"}, tags={"PC": ["serial:1", "vnc:2"], "R1": ["pat:3:22"]})
DEVICES: Final = "- {label: PC, is_user_visible: false, port_tags: ['vnc:2']}\n- {label: R1, image_definition: x}\n"
XML: Final = '<?xml version="1.0" encoding="UTF-8"?><grade><item points="1">ok</item></grade>'
EVENT: Final = {
    "specversion": "1.0",
    "id": "e1",
    "source": "/lds",
    "type": "lds.session.started.v1",
    "time": "2026-01-01T00:00:00Z",
    "datacontenttype": "application/json",
    "data": {"lds_session_id": "s1"},
}


def parse_topology(rng: Random) -> None:
    """Parse a topology, and render it."""
    found = topologies.parse(as_yaml(rng, rng.choice([SMALL, TEST_LAB])))
    ports = {slot.name: 10_000 + n for n, slot in enumerate(found.template.slots)}
    yaml.compose(found.render(title="t", notes="n", ports=ports), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def parse_devices(rng: Random) -> None:
    """Parse a devices.yaml."""
    package.parse(as_yaml(rng, DEVICES), topologies.parse(SMALL).devices)


def zipped(rng: Random) -> bytes:
    """Return a zip with hostile names and files."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        files: dict[str, bytes] = {
            "cml.yaml": as_yaml(rng, SMALL).encode(errors="surrogateescape") if rng.random() < 0.2 else SMALL.encode(),
            "devices.yaml": DEVICES.encode(),
            "version": rng.choice([b"1.0", b"1.0", b"1.0", b"1.0", b"1.0", b"", b"\xff", b"../1", b"1" * 3000]),
            "grade.xml": XML.encode(),
        }
        if rng.random() < 0.3:
            files[rng.choice(["../a", "/etc/x", "a\\b", "C:x", "a/./b", "\u202e", "x" * 300, "con", "a//b"])] = b"x"
        if rng.random() < 0.1:
            files["pod.xml"] = b"\0" * 2**21
        if rng.random() < 0.05:
            files |= {f"f{n}": b"" for n in range(150)}
        for name, data in files.items():
            if rng.random() < 0.95:
                archive.writestr(name, data)
    return raw.getvalue()


def parse_zip(rng: Random) -> None:
    """Unpack a package and parse what it holds."""
    data = zipped(rng)
    if rng.random() < 0.4:
        data = distorted(rng, data)
    package.validate(package.read(data, LIMITS, version="1"))


def parse_xml(rng: Random) -> None:
    """Unpack a package with a hostile XML file."""
    raw = io.BytesIO()
    text = rng.choice(BOMBS).encode() if rng.random() < 0.05 else distorted(rng, XML.encode())
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("cml.yaml", SMALL)
        archive.writestr(rng.choice(["grade.xml", "pod.xml"]), text)
    package.read(raw.getvalue(), LIMITS, version="1")


def header(rng: Random) -> str:
    """Return the value of a header, as aiohttp decodes it."""
    text = rng.choice(
        [
            "Bearer abc",
            "sha256=00",
            "1.0",
            "application/json",
            "",
            "Bearer " + "x" * 20_000,
            "é",
            "%ff%00",
            "\udcff\udc80",
        ]
    )
    return (
        text
        if rng.random() < 0.3
        else distorted(rng, text.encode(errors="surrogateescape")).decode(errors="surrogateescape")
    )


def parse_events(rng: Random) -> None:
    """Decode the session events of a request."""
    kind = rng.randrange(3)
    if kind == 0:
        headers = CIMultiDict({"Content-Type": "application/cloudevents+json"})
        body = as_json(rng, EVENT)
    elif kind == 1:
        headers = CIMultiDict({"Content-Type": "application/cloudevents-batch+json"})
        body = as_json(rng, [EVENT, {**EVENT, "data": None, "data_base64": "e30="}])
    else:
        headers = CIMultiDict({f"ce-{key}": value for key, value in EVENT.items() if isinstance(value, str)})
        headers.popall("ce-datacontenttype")
        headers[rng.choice(["ce-id", "ce-type", "ce-time", "ce-specversion", "ce-subject", "ce-x"])] = header(rng)
        body = as_json(rng, EVENT["data"])
    for event in cloudevents.read(cloudevents.mode_of(headers), headers, body):
        if isinstance(event, EventInvalid):
            continue
        with contextlib.suppress(EventInvalid):
            said = cloudevents.session_event(event, 1_800_000_000)
            if said is not None:
                inbox.object_name(said.session)
                msgspec.json.encode(said)


def parse_headers(rng: Random) -> None:
    """Read the headers of a request."""
    request: Any = SimpleNamespace(headers=CIMultiDict({"Authorization": header(rng)}))
    assert bearer(request).isascii()
    headers = CIMultiDict({"Content-Type": header(rng)} | ({"ce-specversion": "1.0"} if rng.random() < 0.3 else {}))
    cloudevents.mode_of(headers)


def parse_annotations(rng: Random) -> None:
    """Read the annotations and labels of a Pod, and the request on a definition."""
    notes = {
        f"vkprovider.io/{name}": str(any_value(rng)) if rng.random() < 0.7 else header(rng)
        for name in ("username", "timeslot-start", "timeslot-end", "desired-state", "reset", "lent-by")
    }
    found = inputs_of(Metadata(name="p", annotations=notes, labels={"vkprovider.io/pool": str(any_value(rng))}))
    assert all(len(fault) < 1000 for fault in found.faults)
    refresh.read(as_json(rng, {"requestedAt": "x", "force": True, "requestedBy": "ann"}).decode(errors="replace"))
    with contextlib.suppress(ValueError):
        Resources.from_quantities({"cpu": str(any_value(rng)), "memory": str(any_value(rng))})


def parse_specs(rng: Random) -> None:
    """Parse the specs of custom resources."""
    if rng.random() < 0.5:
        worker = {"url": "https://cml-1", "credentialsSecretName": "cml-1", "portRange": {"start": 2000, "end": 3000}}
        parse_worker_spec(replaced(rng, worker))
    else:
        parse_definition_spec(replaced(rng, {"version": "1.0", "source": {"inline": "x"}, "resources": {"cpu": "1"}}))


def parse_config_maps(rng: Random) -> None:
    """Read the ConfigMaps that the provider keeps."""
    note = {"vkprovider.io/installation": "i", "vkprovider.io/version": "1", "vkprovider.io/sequence": "1"}
    meta = Metadata(name="c", annotations={**note, "vkprovider.io/definition": "d"})
    raw = as_json(rng, {"schemaVersion": 1, "worker": {"name": "w", "installation": "i"}, "lablets": [{"podUID": "u"}]})
    match rng.randrange(4):
        case 0:
            text = raw.decode(errors="replace")
            document.read(ConfigMap(meta, data={portstore.DATA_KEY: text}), worker="w", installation="i")
        case 1:
            packed = gzip.compress(as_yaml(rng, SMALL).encode(errors="surrogateescape"), mtime=0)
            packed = distorted(rng, packed) if rng.random() < 0.5 else packed
            found = ConfigMap(meta, binary_data={contents.CONTENT_KEY: base64.b64encode(packed).decode()})
            package.validate(contents.package_of(found))
        case 2:
            left = Leftovers("n", "p", "u", "d", "1", configs={"a": "b"})
            data = as_json(rng, msgspec.to_builtins(left))
            leftovers.read(ConfigMap(meta, binary_data={leftovers.KEY: pack(data)}))
        case _:
            row = msgspec.to_builtins(SessionEvents("s"))
            text = as_json(rng, row).decode(errors="replace")
            inbox.read(ConfigMap(meta, data={inbox.DATA_KEY: text}), "i")


CML_REQUEST: Final = cml_operations.GET_LAB.to(lab="l")
LDS_REQUEST: Final = lds_operations.INFO.to()
CML_SHAPES: Final = tuple(
    shape
    for name, shape in vars(wire).items()
    if name.startswith("Cml") and isinstance(shape, type) and issubclass(shape, msgspec.Struct)
)
LDS_SHAPES: Final = (lds.LabSessionInfo, lds.ContentMetadata, lds.ResponseData, lds.FeedbackData, lds.Info)


def example_of(kind: inspect.Type) -> Any:
    """Return a value of a type."""
    match kind:
        case inspect.StructType():
            return {field.encode_name: example_of(field.type) for field in kind.fields}
        case inspect.ListType():
            return [example_of(kind.item_type)]
        case inspect.DictType():
            return {"x": example_of(kind.value_type)}
        case inspect.UnionType():
            return example_of(kind.types[0])
        case inspect.IntType() | inspect.FloatType():
            return 1
        case inspect.BoolType():
            return True
        case inspect.DateTimeType():
            return "2026-01-01T00:00:00Z"
        case _:
            return "x"


def answer_of(rng: Random, dialect: Any, request: Any, shapes: tuple[type, ...]) -> None:
    """Judge and decode one answer."""
    shape = rng.choice(shapes)
    valid = example_of(inspect.type_info(shape))
    if rng.random() < 0.05:
        valid["unknown"] = [rng.choice(VALUES)]
    status = rng.choice([*([200] * 15), 204, 301, 400, 401, 403, 404, 409, 422, 429, 500, 503, 599])
    headers = {"content-type": header(rng), "location": header(rng), "retry-after": header(rng)}
    wrapped, kind = rng.choice([(valid, shape), ([valid], list[shape]), ({"x": valid}, dict[str, shape])])  # type: ignore[valid-type]
    refusal = {"description": "x", "code": 5, "message": "no"}
    response = Response(status, as_json(rng, wrapped if rng.random() < 0.8 else refusal), headers)
    error = error_of(dialect, request, response, ["secret"])
    if error is not None:
        raise error
    decode(dialect, request, response, kind)


def parse_cml(rng: Random) -> None:
    """Judge and decode an answer of CML."""
    answer_of(rng, CmlDialect("cml-1"), CML_REQUEST, CML_SHAPES)


def parse_lds(rng: Random) -> None:
    """Judge and decode an answer of an LDS."""
    answer_of(rng, LdsDialect("lds-1"), LDS_REQUEST, LDS_SHAPES)


PARSERS: Final[Mapping[str, Callable[[Random], None]]] = {
    "topology": parse_topology,
    "devices": parse_devices,
    "zip": parse_zip,
    "xml": parse_xml,
    "events": parse_events,
    "headers": parse_headers,
    "annotations": parse_annotations,
    "specs": parse_specs,
    "configmaps": parse_config_maps,
    "cml": parse_cml,
    "lds": parse_lds,
}


# ------------------------------------------------------------------------------------------------ a run


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the inputs of one parser.

    Attributes:
        faults: Number of the input and what came out of it that is not a refusal.
    """

    accepted: int
    refused: int
    slowest_s: float
    faults: list[str]


def run(parser: str, seed: int, count: int) -> Outcome:
    """Run a parser over its part of the corpus; each input has a seed of its own, so that it can be run again alone."""
    accepted = refused = 0
    slowest_s, faults = 0.0, []
    for number in range(count):
        began = time.process_time()
        try:
            PARSERS[parser](Random(f"{parser} {seed + number}"))
            accepted += 1
        except REFUSALS:
            refused += 1
        except Exception as error:  # noqa: BLE001 (that is what is looked for)
            faults.append(f"{seed + number}: {type(error).__name__}: {str(error)[:200]}")
        took_s = time.process_time() - began
        slowest_s = max(slowest_s, took_s)
        if took_s > CPU_S:
            faults.append(f"{seed + number}: took {took_s:.1f} s of CPU time")
    return Outcome(accepted, refused, round(slowest_s, 3), faults[:20])


def main() -> None:
    """Run one parser with limits; print the outcome."""
    parser, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.write(msgspec.json.encode(run(parser, seed, count)).decode() + "\n")


if __name__ == "__main__":
    main()
