"""Download the official programs of the control plane, of the versions that go.mod pins, instead of building them.

Kubernetes publishes each program with a file that holds its SHA-256 sum, etcd an archive, with one file for the sums of
a release (https://kubernetes.io/releases/download, https://github.com/etcd-io/etcd/releases). Nothing is run before its
sum is compared.
"""

import asyncio
import hashlib
import platform
import re
import shutil
import tarfile
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarl import URL

from vkprovider.platform.messages import listed
from vkpsandbox.controlplane.fetch import Fetcher, File, fetching, parse, shown, writing
from vkpsandbox.controlplane.kept import Progress, elapsed
from vkpsandbox.controlplane.versions import ETCD, etcd_version, kubernetes_version, said_by
from vkpsandbox.errors import NetworkFailed, SandboxError

MIRROR_VARIABLE: Final = "VKPROVIDER_SANDBOX_MIRROR"
"""Environment variable: the URL below which the paths of the official hosts are, for programs."""

SUMS_VARIABLE: Final = "VKPROVIDER_SANDBOX_SUMS"
"""The same for the sums; without, they come from the official hosts, wherever the programs do."""

KUBERNETES: Final = "https://dl.k8s.io"
ETCD_RELEASES: Final = "https://github.com"

OFFER: Final = (
    "with --download (make demo DOWNLOAD=1) official programs are taken instead, some 350 MB: in a minute or two, no Go"
)
"""What a build could have saved."""

TELL_S: Final = 5.0
"""How often a running download reports progress."""

_FEW: Final = 3
"""The most programs that such a report names."""
_MB: Final = 1_000_000
_PROGRAM_BYTES_MAX: Final = 512 << 20
_SUMS_BYTES_MAX: Final = 1 << 20
_ARCHITECTURES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_SUM: Final = re.compile(r"[0-9a-fA-F]{64}")
_PAGE: Final = re.compile(rb"\s*<(!doctype|html|head)", re.IGNORECASE)
_EXECUTABLE: Final = 0o755


@dataclass(frozen=True)
class Release:
    """A program as it is published.

    Attributes:
        program: Its name.
        version: That it must say it has.
        url: Of a file.
        sums: URL of a file with the sum of that one.
        member: The program's name in that file, if it is an archive.
    """

    program: str
    version: str
    url: URL
    sums: URL
    member: str = ""

    @property
    def file(self) -> str:
        """The name of the file."""
        return self.url.name


def architecture_of(system: str, machine: str) -> str:
    """Return the architecture for which there are programs, as their paths have it; "" if there are none.

    >>> architecture_of("Linux", "aarch64"), architecture_of("Darwin", "arm64"), architecture_of("Linux", "riscv64")
    ('arm64', '', '')
    """
    return _ARCHITECTURES.get(machine.lower(), "") if system == "Linux" else ""


def is_offered() -> bool:
    """Return whether there are programs for this machine."""
    return bool(architecture_of(platform.system(), platform.machine()))


def releases(
    programs: Sequence[str], kubernetes: str, etcd: str, architecture: str, environ: Mapping[str, str]
) -> list[Release]:
    """Return where programs are published.

    Args:
        programs: Their names.
        kubernetes: The version of Kubernetes.
        etcd: The version of etcd.
        architecture: See `architecture_of`.
        environ: May name mirrors.

    Raises:
        SandboxError: A mirror's URL will not do.
    """

    def published(program: str) -> Release:
        if program == ETCD:
            name, folder = f"etcd-{etcd}-linux-{architecture}", f"/etcd-io/etcd/releases/download/{etcd}"
            host, path, sums, member = ETCD_RELEASES, f"{folder}/{name}.tar.gz", f"{folder}/SHA256SUMS", f"{name}/etcd"
        else:
            host, member = KUBERNETES, ""
            path = f"/release/{kubernetes}/bin/linux/{architecture}/{program}"
            sums = f"{path}.sha256"
        return Release(
            program,
            etcd if program == ETCD else kubernetes,
            _below(MIRROR_VARIABLE, host, path, environ),
            _below(SUMS_VARIABLE, host, sums, environ),
            member,
        )

    return [published(program) for program in programs]


def _below(variable: str, official: str, path: str, environ: Mapping[str, str]) -> URL:
    named = environ.get(variable, "")
    try:
        base = parse(named or official)
    except ValueError as error:
        raise SandboxError(f"{variable}={named} {error}") from error
    return base.with_path(base.path.rstrip("/") + path)


def sum_in(text: str, name: str) -> str:
    """Return a file's sum from a text that is a sum alone, or has lines of a sum and a name; "" if it has none.

    Args:
        text: As `sha256sum` writes it, or a bare sum.
        name: Of the file.
    """
    rows = [line.split() for line in text.splitlines() if line.strip()]
    bare = [row[0] for row in rows if len(rows) == len(row) == 1]
    named = [row[0] for row in rows if row[1:] in ([name], [f"*{name}"])]
    return next((found.lower() for found in [*bare, *named] if _SUM.fullmatch(found)), "")


def download(
    programs: Sequence[str], go_mod: bytes, into: Path, environ: Mapping[str, str], on_progress: Progress
) -> None:
    """Download programs, compare their sums, and ask each for its version.

    Args:
        programs: Their names.
        go_mod: Pins the versions.
        into: A folder that is made; it is incomplete after an error.
        environ: May name mirrors.
        on_progress: Called with a line per program, and every `TELL_S`.

    Raises:
        NetworkFailed: The network, or a server, failed again and again.
        SandboxError: There are no programs for this machine, or what came is not what it should be.
    """
    kubernetes, etcd = kubernetes_version(go_mod), etcd_version(go_mod)
    system, machine = platform.system(), platform.machine()
    architecture = architecture_of(system, machine)
    if not architecture:
        raise SandboxError(
            f"there are official programs of the control plane for Linux on amd64 and arm64 only, and this is {system} "
            f"on {machine}: leave out --download, and they are built"
        )
    found = releases(programs, kubernetes, etcd, architecture, environ)
    with writing(into):
        into.mkdir()
    places = {release.url.host or "" for release in found}
    witnesses = {release.sums.host or "" for release in found}
    by = f", with sums from {' and '.join(sorted(witnesses))}" if witnesses != places else ""
    on_progress(
        f"downloading the control plane {kubernetes} and etcd {etcd} from {' and '.join(sorted(places))}{by}: once"
    )
    asyncio.run(_obtain_all(found, into, on_progress))
    for release in found:
        said = said_by(into / release.program)
        if said != release.version:
            raise SandboxError(
                f"{shown(release.url)} is not {release.program} {release.version}: it says that it is {said}; "
                "nothing is kept"
            )
    on_progress("  all have their sums, and say their versions")


async def _obtain_all(found: Sequence[Release], into: Path, on_progress: Progress) -> None:
    """Obtain programs at the same time; the first failure ends all."""
    began = time.monotonic()
    files = {release.program: File(release.url, into / release.file, _PROGRAM_BYTES_MAX) for release in found}
    left = dict(files)

    async def obtain(fetcher: Fetcher, release: Release) -> None:
        file = files[release.program]
        await _obtain(fetcher, release, file)
        del left[release.program]
        number, took = len(files) - len(left), time.monotonic() - began
        which = f"  {release.program} ({number} of {len(files)})"
        on_progress(f"{which} downloaded: {_mb(file.received)} after {took:.0f} s")

    async def tell() -> None:
        while True:
            await asyncio.sleep(TELL_S)
            received = sum(file.received for file in files.values())
            sizes = [file.size for file in files.values()]
            whole = f" of {_mb(sum(filter(None, sizes)))}" if None not in sizes else ""
            so_far = elapsed(time.monotonic() - began)
            on_progress(f"  {_mb(received)}{whole}, {so_far} so far; on the way: {listed(list(left), _FEW)}")

    async with fetching(lambda trouble: on_progress(f"  {trouble}")) as fetcher:
        teller = asyncio.create_task(tell())
        try:
            async with asyncio.TaskGroup() as group:
                for release in found:
                    group.create_task(obtain(fetcher, release))
        except ExceptionGroup as several:
            # Of what failed at the same time, a verdict counts more than the network.
            raise min(several.exceptions, key=lambda error: isinstance(error, NetworkFailed)) from None
        finally:
            teller.cancel()


async def _obtain(fetcher: Fetcher, release: Release, file: File) -> None:
    """Fetch a program and its sum, and compare."""
    sums = File(release.sums, file.path.with_name(f"{release.program}.sums"), _SUMS_BYTES_MAX)
    await fetcher.fetch(sums)
    wanted = sum_in(sums.path.read_text(encoding="utf-8", errors="replace"), release.file)
    if not wanted:
        what = "is a page, as of a login to this network," if _is_page(sums.path) else "is something else"
        raise SandboxError(f"{shown(sums.url)} {what} and no SHA-256 sum of {release.file}; nothing is kept")
    sums.path.unlink()
    await fetcher.fetch(file)
    await asyncio.to_thread(_accept, release, file.path, wanted)


def _accept(release: Release, path: Path, wanted: str) -> None:
    """Compare a sum, and leave the program where it belongs.

    Raises:
        SandboxError: The sum is another one, or the archive has no such program.
    """
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wanted:
        what = "is a page, as of a login to this network: its" if _is_page(path) else "is not what was released: its"
        raise SandboxError(
            f"{shown(release.url)} {what} SHA-256 sum is {found}, not {wanted}, as {shown(release.sums)} has it; "
            "nothing is kept"
        )
    program = path.with_name(release.program)
    if release.member:
        _unpack(path, release.member, program)
        path.unlink()
    program.chmod(_EXECUTABLE)


def _unpack(archive: Path, member: str, program: Path) -> None:
    """Take one file out of an archive.

    Raises:
        SandboxError: There is no such file in it, or it cannot be written.
    """
    try:
        with tarfile.open(archive, "r:gz") as packed:
            entry = packed.getmember(member)
            source = packed.extractfile(entry) if entry.isreg() else None
            if source is not None:
                with writing(program), source, program.open("wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)
    except (KeyError, tarfile.TarError, zlib.error, EOFError, OSError):
        source = None
    if source is None:
        raise SandboxError(f"{archive.name} has no file {member}: it is no release of etcd; nothing is kept")


def _is_page(path: Path) -> bool:
    """Return whether a file is HTML, whatever it should be."""
    with path.open("rb") as file:
        return bool(_PAGE.match(file.read(1 << 10)))


def _mb(received: int) -> str:
    return f"{received / _MB:.0f} MB"
