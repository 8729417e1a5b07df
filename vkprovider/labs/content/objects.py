"""Object stores through obstore: `s3://BUCKET[/PREFIX]`, `file:///FOLDER` and `memory://`."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from tunnels.outgoing import ProxyUnsupportedError, place_of, proxy_of
from vkprovider.labs.content.spi import PackageName, StoredPackage
from vkprovider.labs.pure.definition.package import too_large
from vkprovider.labs.settings.services import ContentSettings
from vkprovider.platform.errors import DeadlineExceeded, Forbidden, InputError, NotFound, Unauthorized, Unavailable
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.settings import reveal

if TYPE_CHECKING:
    from obstore.store import ClientConfig, LocalStore, MemoryStore, S3Store

    Store: TypeAlias = LocalStore | MemoryStore | S3Store

_CONNECT_S: Final = 5
_RETRIES: Final = 2
_EVERY_HOST: Final = "*,0.0.0.0/0,::/0"
_VERSION: Final = "version"
"""Key of the objects' metadata."""


class ObjectStores:
    """The buckets of one object store; each is opened at its first use."""

    def __init__(self, place: ContentSettings) -> None:
        self._place = place
        self._stores: dict[str, Store] = {}

    def locate(self, name: PackageName) -> str:
        """Return the full name of a package, for messages."""
        folder = self._folder(name.bucket)
        where = f"{folder.rstrip('/')}/{name.key}"
        if not folder.startswith("s3://"):
            return where
        return f"{where} at {self._place.endpoint}{_through(self._place.endpoint)}"

    async def get(self, name: PackageName, *, bytes_max: int) -> StoredPackage:
        """Get a package; never holds more than `bytes_max` of it.

        Raises:
            InputError: `PackageTooLarge` or `SettingInvalid`.
            OutsideError: The store refused, failed or did not answer.
        """
        where = self.locate(name)
        try:
            async with asyncio.timeout(self._place.timeout_s):
                with _translated(where):
                    store = self._stores.get(name.bucket)
                    if store is None:
                        store = self._stores[name.bucket] = await asyncio.to_thread(self._open, name.bucket)
                    return await _read(store, name.key, where, bytes_max)
        except TimeoutError:
            raise DeadlineExceeded(f"{where} was not there within {self._place.timeout_s:g} s") from None

    def store(self, bucket: str = "") -> "Store":
        """Open a bucket, for instance to fill a store in memory.

        Raises:
            InputError: `SettingInvalid`.
            OutsideError: A folder does not exist.
        """
        with _translated(self._folder(bucket)):
            if bucket not in self._stores:
                self._stores[bucket] = self._open(bucket)
            return self._stores[bucket]

    def _folder(self, bucket: str) -> str:
        """Return the URL of a bucket: another bucket of S3, or a folder in the folder."""
        url = self._place.url
        if not bucket:
            return url
        return f"s3://{bucket}" if url.startswith("s3:") else f"{url.rstrip('/')}/{bucket}"

    def _open(self, bucket: str) -> "Store":
        from obstore.store import LocalStore, MemoryStore, S3Store  # noqa: PLC0415 (5 MB that few installations need)

        place, url = self._place, urlsplit(self._folder(bucket))
        match url.scheme:
            case "s3" if url.hostname:
                keys: dict[str, Any] = {"skip_signature": True}
                access, secret = reveal(place.access_key), reveal(place.secret_key)
                if access and secret:
                    keys = {"access_key_id": access, "secret_access_key": secret}
                return S3Store(
                    url.hostname,
                    prefix=unquote(url.path).strip("/") or None,
                    endpoint=place.endpoint,
                    region=place.region,
                    virtual_hosted_style_request=False,
                    client_options={
                        "allow_http": True,
                        "connect_timeout": timedelta(seconds=min(_CONNECT_S, place.timeout_s)),
                        "timeout": timedelta(seconds=place.timeout_s),
                        **_way(place.endpoint),
                    },
                    retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=place.timeout_s)},
                    **keys,
                )
            case "file" if url.path.startswith("/"):
                return LocalStore(unquote(url.path))
            case "memory":
                return MemoryStore()
            case _:
                raise InputError(
                    StartReason.SETTING_INVALID, f"VKPROVIDER_CONTENT_STORE {place.url[:80]!r} cannot be opened"
                )


def _way(endpoint: str) -> "ClientConfig":
    """Return the options that lead to a store through its proxy or through none.

    Without any, obstore reads the environment itself: it leads loopback through the proxy, and knows no ports in
    `NO_PROXY`. Only a proxy that is named keeps it from that, hence one that is for no host.

    Raises:
        ProxyUnsupportedError: The environment names a proxy that cannot be used.
    """
    proxy = proxy_of(endpoint, os.environ)
    return {"proxy_url": proxy} if proxy else {"proxy_url": endpoint, "proxy_excludes": _EVERY_HOST}


def _through(endpoint: str) -> str:
    """Return the words that name the proxy to a store; empty without one."""
    try:
        proxy = proxy_of(endpoint, os.environ)
    except ProxyUnsupportedError:  # said when the store is opened
        return ""
    return f" through the proxy {place_of(proxy)}" if proxy else ""


def open_store(place: ContentSettings) -> ObjectStores:
    """Return the stores of a place; no request is sent yet."""
    return ObjectStores(place)


async def _read(store: "Store", key: str, where: str, bytes_max: int) -> StoredPackage:
    import obstore  # noqa: PLC0415 (as above)

    def refuse(size: int) -> InputError:
        return too_large(f"{where} has {size} bytes", bytes_max, "VKPROVIDER_PACKAGE_BYTES_MAX")

    answer = await obstore.get_async(store, key)
    size = answer.meta["size"]
    if size > bytes_max:
        raise refuse(size)
    data = bytearray()
    async for chunk in answer.stream():
        data += chunk
        if len(data) > bytes_max:
            raise refuse(len(data))
    return StoredPackage(bytes(data), str(dict(answer.attributes).get(_VERSION, "")))


@contextmanager
def _translated(where: str) -> Iterator[None]:
    """Translate obstore's errors into the tree of `platform.errors`.

    Raises:
        OutsideError: obstore raised one of its errors.
    """
    from obstore import exceptions  # noqa: PLC0415 (as above)

    try:
        yield
    except (exceptions.NotFoundError, FileNotFoundError) as error:
        raise NotFound(f"{where} does not exist: {_said(error)}", status=404) from None
    except (exceptions.PermissionDeniedError, PermissionError) as error:
        raise Forbidden(f"{where} may not be read: {_said(error)}", status=403) from None
    except exceptions.UnauthenticatedError as error:
        raise Unauthorized(f"{where} may not be read: {_said(error)}", status=401) from None
    except (exceptions.BaseError, OSError, ValueError) as error:
        raise Unavailable(f"{where} cannot be read: {_said(error)}") from None


def _said(error: Exception) -> str:
    """Return a store's text, without the address (the message has it) and without obstore's own structures."""
    text = str(error).partition("\n\nDebug source")[0]
    code = text.partition("<Code>")[2].partition("</Code>")[0]
    return code or text.rpartition(" - ")[2].rpartition("): ")[2]
