"""`--watch`: a row for each change of a lablet, until Ctrl-C.

The informer of the provider follows the Pods: it goes on where a watch ended or broke, and lists again when the API
server has forgotten that place.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

import click
import msgspec
import structlog

from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.shared.output import Listing, Output
from vkprovider.cli.shared.place import Scope
from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.kube.watch import key_of

T = TypeVar("T", bound=msgspec.Struct)
_TABLES: Final = frozenset({"table", "wide"})


class Printer(Generic[T]):
    """Prints rows as they come; a table has its headings once."""

    def __init__(self, listing: Listing[T], output: Output, but: Sequence[str]) -> None:
        self._listing = listing
        self._output = output
        self._but = but
        self._table = listing.table(output, but)
        self._headed = output not in _TABLES

    def show(self, *rows: T) -> None:
        """Print rows, at once."""
        if self._output in _TABLES:
            cells = [self._listing.cells(row, self._output, self._but) for row in rows]
            self._table.fit(cells)
            head = [] if self._headed or not rows else [self._table.head()]
            self._headed = self._headed or bool(rows)
            lines = [*head, *self._table.lines(cells)]
        else:
            start = "---\n" if self._output == "yaml" else ""
            lines = [start + self._listing.alone(row, self._output) for row in rows]
        for line in lines:
            click.echo(line)
        sys.stdout.flush()


async def follow(
    pods: Resource[LabletPod],
    scope: Scope,
    listed: Sequence[LabletPod],
    row_of: Callable[[LabletPod], T],
    printer: Printer[T],
) -> None:
    """Print a row for each lablet, then one for each change, for ever.

    A row that shows what the one before showed is left out. The last row of a lablet that is gone is its last state.

    Args:
        pods: Where.
        scope: Which of them.
        listed: The lablets, as they were listed.
        row_of: Makes the row of a Pod.
        printer: Prints them.
    """
    _log_to_stderr()
    shown = {key_of(pod.metadata): row_of(pod) for pod in listed}
    printer.show(*shown.values())
    changes: asyncio.Queue[tuple[str, T, bool]] = asyncio.Queue()

    def changed(old: LabletPod | None, new: LabletPod | None) -> None:
        pod = new or old
        if pod is not None and pod.is_lablet:
            changes.put_nowait((key_of(pod.metadata), row_of(pod), new is None))

    informer = Informer(
        pods.kube, pods.path, LabletPod, name="pods", label_selector=scope.labels, field_selector=scope.fields
    )
    informer.add_handler(changed)
    running = asyncio.create_task(informer.run(), name="watch")
    try:
        await informer.synced.wait()
        for key in shown.keys() - informer.items.keys():  # gone between the two lists
            printer.show(shown.pop(key))
        while True:
            key, row, gone = await changes.get()
            if gone:
                shown.pop(key, None)
                printer.show(row)
            elif shown.get(key) != row:
                shown[key] = row
                printer.show(row)
    finally:
        await end_tasks((running,))


def _log_to_stderr() -> None:
    """Keep what the informer logs, such as an API server that is away, out of the output."""
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.dev.ConsoleRenderer(colors=False)],
        wrapper_class=structlog.make_filtering_bound_logger(30),  # warnings
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
