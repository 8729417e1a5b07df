"""The process that parses untrusted content: `python -m vkprovider.labs.content.parser`.

It answers requests on its standard input until that ends, or until it has been idle for a while. Limits on its memory
and on the CPU time of each request end it, and nothing else; `parsing` starts another one.
"""

import os
import resource
import select
import struct
from io import FileIO
from typing import BinaryIO, Final

import msgspec

from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.pure.definition import package as packages
from vkprovider.labs.pure.definition.package import Package
from vkprovider.labs.pure.topology.topology import Topology
from vkprovider.labs.settings.services import PackageSettings
from vkprovider.platform.errors import InputError, shorten

MEMORY_BYTES_MAX: Final = 256 * 2**20
"""Address space of the process; with the provider it fits into the memory limit of the shipped Deployment."""
CPU_S_MAX: Final = 30
"""CPU time of one request; the largest topology that is accepted takes a few seconds."""
READY: Final = b"ready\n"
HEADER: Final = struct.Struct(">I")
_IDLE_S: Final = 60.0


class ReadPackage(msgspec.Struct, frozen=True, tag=True):
    """A request to unpack a content package; see `packages.read`.

    Attributes:
        limits: The fields of `PackageSettings`.
    """

    data: bytes
    limits: dict[str, int]
    version: str


class ReadTopology(msgspec.Struct, frozen=True, tag=True):
    """A request to parse the topology of an unpacked package; see `packages.validate`."""

    package: Package


Request = ReadPackage | ReadTopology


class ParserAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a request: one of its fields.

    Attributes:
        refused: Reason and message of the `InputError`.
    """

    package: Package | None = None
    topology: Topology | None = None
    refused: tuple[str, str] | None = None


def refusal(request: Request, what: str) -> tuple[str, str]:
    """Return reason and message for a document that cannot be parsed within the limits."""
    if isinstance(request, ReadPackage):
        return DefinitionReason.PACKAGE_INVALID, f"the package cannot be read: {what}"
    return DefinitionReason.TOPOLOGY_INVALID, f"the topology cannot be read: {what}"


def out_of_memory() -> str:
    """Return the error of a document that needs too much memory."""
    return f"it needs more than {MEMORY_BYTES_MAX // 2**20} MiB of memory; make it smaller"


def answer(request: Request) -> ParserAnswer:
    """Parse a document; whatever it is, the answer is its content or a refusal."""
    try:
        if isinstance(request, ReadPackage):
            return ParserAnswer(
                package=packages.read(request.data, PackageSettings(**request.limits), version=request.version)
            )
        return ParserAnswer(topology=packages.validate(request.package))
    except InputError as error:
        return ParserAnswer(refused=(error.reason, error.message))
    except MemoryError:
        return ParserAnswer(refused=refusal(request, out_of_memory()))
    except Exception as error:  # noqa: BLE001 (a parser's own fault must not be retried for ever)
        return ParserAnswer(refused=refusal(request, f"{type(error).__name__}: {shorten(str(error), 120)}"))


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _allow_cpu() -> None:
    """Allow the next request its CPU time; the kernel ends the process after it (SIGXCPU)."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + CPU_S_MAX
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _exactly(asked: FileIO, size: int) -> bytes:
    """Read a number of bytes; fewer if the input ends."""
    parts = []
    while size and (part := asked.read(min(size, 2**20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def serve(asked: FileIO, answered: BinaryIO) -> None:
    """Answer requests until there are no more."""
    decoder = msgspec.msgpack.Decoder(Request)
    while select.select([asked], [], [], _IDLE_S)[0]:
        header = _exactly(asked, HEADER.size)
        if len(header) < HEADER.size:
            return
        _allow_cpu()
        body = msgspec.msgpack.encode(answer(decoder.decode(_exactly(asked, *HEADER.unpack(header)))))
        answered.write(HEADER.pack(len(body)) + body)
        answered.flush()


def main() -> None:
    """Run the process."""
    _limit()
    answers = os.fdopen(os.dup(1), "wb")
    asked = FileIO(0, "rb", closefd=False)  # unbuffered, so that `select` sees all that is there
    answers.write(READY)
    answers.flush()
    serve(asked, answers)


if __name__ == "__main__":
    main()
