"""Servers on loopback for the tests of sources: PostgreSQL from Debian's packages, and for object stores moto's S3,
gcp-storage-emulator and Azurite. A test that needs one which is not installed is skipped, and says what to install.
Outside the way of the data."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "pa55-of-the-test"
# the key that everybody's Azurite has
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
SECRET_KEY = "5ecret-key-of-the-test"
# gcp-storage-emulator answers one request after the other, but pyarrow begins a second read before it ends the first
GCS = """
from http import server
server.HTTPServer = server.ThreadingHTTPServer
from gcp_storage_emulator.__main__ import main
main()
"""


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

    def asked(self, word: str) -> bool:
        """Whether a query with this word is under way."""
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.dsn) as connection, connection.cursor() as cursor:
            query = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()"
            cursor.execute(f"{query} AND query LIKE '%{word}%'")
            return bool(cursor.fetchone()[0])

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


@dataclass(frozen=True)
class StoreServer:
    """An object store: the environment in which it is found, and what of that is secret."""

    environment: dict[str, str]
    secret: str


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, server)
        yield
    finally:
        server.terminate()
        server.wait()


@contextmanager
def _temporary(prefix: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=prefix, dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def azure_connection(endpoint: str) -> str:
    return f"AccountName=devstoreaccount1;AccountKey={AZURE_KEY};BlobEndpoint={endpoint}"


def azure_server() -> Iterator[StoreServer]:
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("needs Azurite: npm install -g azurite")
    port = free_port()
    with _temporary("anon-test-azure-") as folder:
        places = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder)]
        with _running([program, "--silent", "--skipApiVersionCheck", "--disableTelemetry", *places], port):
            connection = azure_connection(f"http://127.0.0.1:{port}/devstoreaccount1")
            yield StoreServer({"AZURE_STORAGE_CONNECTION_STRING": connection}, AZURE_KEY)


def s3_server() -> Iterator[StoreServer]:
    if find_spec("moto") is None or find_spec("flask") is None:
        pytest.skip("needs moto's S3 server: pip install 'moto[s3,server]'")
    port = free_port()
    environment = {
        "AWS_ACCESS_KEY_ID": "test-key",
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with _running([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port):
        yield StoreServer(environment, SECRET_KEY)


def gcs_server() -> Iterator[StoreServer]:
    if find_spec("gcp_storage_emulator") is None or find_spec("cryptography") is None:
        pytest.skip("needs an emulator of Google's store: pip install gcp-storage-emulator cryptography")
    port = free_port()
    command = [sys.executable, "-c", GCS, "start", "--host", "127.0.0.1", "--port", str(port), "--in-memory", "--quiet"]
    with _temporary("anon-test-gcs-") as folder, _running(command, port):
        account = _service_account()
        (folder / "account.json").write_text(json.dumps(account))
        environment = {
            "CLOUD_STORAGE_EMULATOR_ENDPOINT": f"http://127.0.0.1:{port}",
            "GOOGLE_APPLICATION_CREDENTIALS": str(folder / "account.json"),
            "GOOGLE_CLOUD_PROJECT": account["project_id"],
        }
        yield StoreServer(environment, account["private_key"].splitlines()[1])


def _service_account() -> dict[str, str]:
    """A service account of nobody: its tokens are signed here, so nobody is asked for one."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {
        "type": "service_account",
        "project_id": "house",
        "private_key_id": "1",
        "private_key": rsa.generate_private_key(65537, 2048).private_bytes(*form).decode(),
        "client_email": "tester@house.iam.gserviceaccount.com",
        "token_uri": "http://127.0.0.1:9/token",
    }


STORE_SERVERS: dict[str, Callable[[], Iterator[StoreServer]]] = {
    "s3": s3_server,
    "gs": gcs_server,
    "az": azure_server,
}
