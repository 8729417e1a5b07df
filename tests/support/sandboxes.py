"""The sandboxes of tests: they end with the test process, and `make rights` gets their audit logs."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vkpsandbox import Sandbox


@contextmanager
def started(name: str, directory: Path, *, audit: bool = False, **how: Any) -> Iterator[Sandbox]:
    """Start a sandbox, and end it.

    If the environment variable RIGHTS_LOGS names a folder, the API server writes an audit log, which is kept there.

    Args:
        name: Its name.
        directory: Directory of its files.
        audit: Whether the test itself reads the audit log.
        how: The other arguments of `Sandbox.up`.
    """
    folder = os.environ.get("RIGHTS_LOGS")
    with Sandbox.up(name, directory=directory, audit=audit or bool(folder), tied=True, **how) as made:
        try:
            yield made
        finally:
            if folder and made.audit_log:
                handle, kept = tempfile.mkstemp(".log", f"{name}-", folder)
                os.close(handle)
                shutil.copyfile(made.audit_log, kept)
