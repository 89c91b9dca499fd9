"""How the environment names the account of a store, and what is said of one that is not there or not allowed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from anon.errors import SourceError
from anon.source import azure, stores
from tests.helpers.services import AZURE_KEY, azure_server

HOSTED = "BlobEndpoint=http://devstoreaccount1.blob.localhost:PORT"
NAMED = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;EndpointSuffix=localhost:PORT"
IN_PATH = "AccountName=devstoreaccount1;BlobEndpoint=http://127.0.0.1:PORT/devstoreaccount1"
NOBODY = "AccountName=devstoreaccount1;BlobEndpoint=http://127.0.0.1:9/devstoreaccount1"


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    for server in azure_server():
        (found,) = re.findall(r"127\.0\.0\.1:(\d+)", server.environment["AZURE_STORAGE_CONNECTION_STRING"])
        yield found


def sas_token(may: str) -> str:
    """A token for everything in the account, signed as Azure wants it."""
    until, version = "2099-01-01T00:00:00Z", "2021-06-08"
    signed = f"devstoreaccount1\n{may}\nb\nsco\n\n{until}\n\nhttps,http\n{version}\n\n"
    signature = hmac.digest(base64.b64decode(AZURE_KEY), signed.encode(), hashlib.sha256)
    fields = {"sv": version, "ss": "b", "srt": "sco", "sp": may, "se": until, "spr": "https,http"}
    return urlencode(fields | {"sig": base64.b64encode(signature).decode()})


def connect(monkeypatch: pytest.MonkeyPatch, *parts: str, port: str = "9") -> None:
    for name in azure.VARIABLES.values():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", ";".join(parts).replace("PORT", port))


@pytest.mark.parametrize(
    "said",
    [
        f"{IN_PATH};AccountKey={AZURE_KEY}",
        f"{NAMED};AccountKey={AZURE_KEY}",
        f"{HOSTED};AccountName=devstoreaccount1;AccountKey={AZURE_KEY}",
        f"{HOSTED};SharedAccessSignature={sas_token('rwdlac')}",
        f"{HOSTED};SharedAccessSignature=?{sas_token('rwdlac')}",
        f"{IN_PATH};SharedAccessSignature={sas_token('rwdlac')}",
    ],
    ids=["path", "suffix", "host", "host-sas", "host-sas-?", "path-sas"],
)
def test_every_form_of_an_azure_connection_reaches_the_account(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: str, said: str
) -> None:
    connect(monkeypatch, said, port=port)
    (tmp_path / "there").write_bytes(b"content")
    container = f"house-{abs(hash(said))}"
    store = stores.Store(f"az://{container}/out")
    store.files.create_dir(container)
    # with a token Azurite asks for what it copies by the name of the host, which not every machine resolves
    store.put(tmp_path / "there", "object", via=None if "localhost" in said else "pending")
    store.get(f"{container}/out/object", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"content"
    assert [info.path for info in store.list()] == [f"{container}/out/object"]
    store.delete("object")
    assert store.list() == []


@pytest.mark.parametrize(
    "secret", [f"AccountKey=AAAA{AZURE_KEY[4:]}", f"SharedAccessSignature={sas_token('rwdlac')[:-9]}AAAAA%3D"]
)
def test_azure_credentials_that_are_wrong_are_told_without_being_shown(
    monkeypatch: pytest.MonkeyPatch, port: str, secret: str
) -> None:
    connect(monkeypatch, IN_PATH, secret, port=port)
    with pytest.raises(SourceError, match=r"access was denied|credentials were refused") as caught:
        stores.StoredFiles("az://house/x.parquet")
    assert secret[-20:] not in str(caught.value)


def test_a_token_that_may_only_read_does_not_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: str) -> None:
    connect(monkeypatch, IN_PATH, f"AccountKey={AZURE_KEY}", port=port)
    stores.Store("az://readable/out").files.create_dir("readable")
    connect(monkeypatch, IN_PATH, f"SharedAccessSignature={sas_token('rl')}", port=port)
    (tmp_path / "there").write_bytes(b"content")
    store = stores.Store("az://readable/out")
    with pytest.raises(SourceError, match="access was denied"):
        store.put(tmp_path / "there", "object")
    assert store.list() == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("", "set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING"),
        ("BlobEndpoint=http://127.0.0.1:9/", "set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING"),
        (f"{NOBODY};AccountKey=not a key", "the account key is not one"),
        (f"{NOBODY};AccountKey=ABC", "the account key is not one"),
        (NOBODY, "there are no credentials, or they were refused"),
    ],
)
def test_an_azure_account_without_a_name_or_a_key_is_exit_5(
    monkeypatch: pytest.MonkeyPatch, said: str, words: str
) -> None:
    connect(monkeypatch, said)
    with pytest.raises(SourceError, match=words):
        stores.StoredFiles("az://house/x.parquet")


def test_variables_name_an_azure_account_too(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "house")
    monkeypatch.setenv("AZURE_STORAGE_KEY", AZURE_KEY)
    assert azure._given() == {"AccountName": "house", "AccountKey": AZURE_KEY}
    assert stores.Store("az://container/x").files.type_name == "abfs"


def test_google_credentials_that_are_not_there_are_exit_5(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nothing.json"))
    with pytest.raises(SourceError, match="there are no credentials, or they were refused"):
        stores.StoredFiles("gs://house/x.parquet")
