"""Real servers on loopback for the tests of sources: PostgreSQL from Debian's packages, moto's S3 and Azurite. A test
that needs one which is not installed is skipped, and says what to install. Outside the way of the data."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "pa55-of-the-test"
# the key that everybody's Azurite has
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
SECRET_KEY = "5ecret-key-of-the-test"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    pytest.fail(f"the server on port {port} did not start")


@dataclass(frozen=True)
class Postgres:
    port: int

    @property
    def dsn(self) -> str:
        return self.written(PASSWORD)

    def written(self, password: str = "${ANON_TEST_PASSWORD}", database: str = "postgres") -> str:
        return f"postgresql://tester:{password}@127.0.0.1:{self.port}/{database}"

    def execute(self, *statements: str) -> None:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.dsn, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def fill(self, name: str, table: Any) -> None:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.dsn) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(name, table, mode="replace")
            connection.commit()


def _postgres_programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("needs PostgreSQL: apt-get install -y postgresql")
    if find_spec("adbc_driver_postgresql") is None:
        pytest.skip("needs the ADBC driver: pip install 'anon-engine[postgres]'")
    return found[-1].parent


def _unprivileged() -> dict[str, Any]:
    """PostgreSQL does not run as root: then as its own user, which the package made."""
    if os.getuid():
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("needs a user `postgres` to run PostgreSQL as, because root may not")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def postgres_server() -> Iterator[Postgres]:
    programs, rights, port = _postgres_programs(), _unprivileged(), free_port()
    folder = Path(tempfile.mkdtemp(prefix="anon-test-pg-", dir="/tmp"))
    folder.chmod(0o755)
    data, password = folder / "data", folder / "password"
    data.mkdir()
    password.write_text(PASSWORD)
    if rights:
        os.chown(data, rights["user"], rights["group"])
    begin = [programs / "initdb", "-D", data, "-U", "tester", f"--pwfile={password}", "-A", "scram-sha-256"]
    begin += ["-E", "UTF8", "--locale=C", "--no-sync"]
    subprocess.run(begin, check=True, capture_output=True, cwd="/", **rights)
    settings = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-p", str(port), *settings], stderr=log, stdout=log, cwd="/", **rights
        )
    try:
        wait_for(port, server)
        found = Postgres(port)
        for _ in range(100):
            try:
                found.execute("SELECT 1")
                break
            except Exception:  # noqa: BLE001 - of any kind: it listens a moment before it is ready
                time.sleep(0.1)
        yield found
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def azure_server() -> Iterator[dict[str, str]]:
    """The environment in which the server is found."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("needs Azurite: npm install -g azurite")
    folder, port = tempfile.mkdtemp(prefix="anon-test-azure-", dir="/tmp"), free_port()
    places = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", folder]
    server = subprocess.Popen(
        [program, "--silent", "--skipApiVersionCheck", "--disableTelemetry", *places],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    account = f"AccountName=devstoreaccount1;AccountKey={AZURE_KEY}"
    endpoint = f"BlobEndpoint=http://127.0.0.1:{port}/devstoreaccount1"
    try:
        wait_for(port, server)
        yield {"AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;{account};{endpoint}"}
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def s3_server() -> Iterator[dict[str, str]]:
    """The environment in which the server is found; it has a bucket `house`."""
    if find_spec("moto") is None or find_spec("flask") is None:
        pytest.skip("needs moto's S3 server: pip install 'moto[s3,server]'")
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    environment = {
        "AWS_ACCESS_KEY_ID": "test-key",
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    try:
        wait_for(port, server)
        yield environment
    finally:
        server.terminate()
        server.wait()
