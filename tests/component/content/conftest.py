"""One S3 server for the tests of the object store."""

from collections.abc import Iterator

import pytest

from tests.support.s3 import S3, s3_server


@pytest.fixture(scope="package")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3") / "log") as server:
        yield server
