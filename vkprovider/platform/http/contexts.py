"""TLS contexts of servers, from memory."""

import ssl
import tempfile
from pathlib import Path


def of_pair(pair: bytes) -> ssl.SSLContext:
    """Return the context of a server with a key and its certificate, PEM.

    Raises:
        ssl.SSLError: They do not belong together.
    """
    # Python's ssl loads certificates only from files; this one exists for the call.
    with tempfile.TemporaryDirectory(prefix="vkprovider-") as folder:  # mode 0700
        path = Path(folder) / "pair.pem"
        path.write_bytes(pair)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(path)
        return context
