"""The Azure account behind az://, for stores.py: it is where the environment says, as Azure's own tools read it."""

from __future__ import annotations

import os
import re

from pyarrow import fs

from anon.errors import SourceError

VARIABLES = {
    "AccountName": "AZURE_STORAGE_ACCOUNT",
    "AccountKey": "AZURE_STORAGE_KEY",
    "SharedAccessSignature": "AZURE_STORAGE_SAS_TOKEN",
}


def azure_files() -> fs.FileSystem:
    """Return the file system of the account that the environment names."""
    given = _given()
    account = given.get("AccountName") or _named_by(given.get("BlobEndpoint", ""))
    if not account:
        raise SourceError("az://: no account; set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING")
    address = _address(account, given)
    if key := given.get("AccountKey"):
        return fs.AzureFileSystem(account, account_key=key, **address)
    if token := given.get("SharedAccessSignature"):
        # pyarrow appends it to the address as it is
        return fs.AzureFileSystem(account, sas_token="?" + token.removeprefix("?"), **address)
    return fs.AzureFileSystem(account, **address)


def _given() -> dict[str, str]:
    """Return the parts of the connection string; without one, what the other variables say."""
    if said := os.environ.get("AZURE_STORAGE_CONNECTION_STRING"):
        return dict(part.strip().split("=", 1) for part in said.split(";") if "=" in part)
    return {part: os.environ[name] for part, name in VARIABLES.items() if os.environ.get(name)}


def _named_by(endpoint: str) -> str | None:
    """Return the account that an endpoint names: a connection string with a SAS token does not name it otherwise.

    >>> _named_by("https://house.blob.core.windows.net/"), _named_by("http://127.0.0.1:10000/house")
    ('house', None)
    """
    found = re.match(r"https?://([a-z0-9]+)\.[^/]*\bblob\.", endpoint)
    return found[1] if found else None


def _address(account: str, given: dict[str, str]) -> dict[str, str]:
    """Return where an account is, for pyarrow: what follows its name in the host, or a host that has the name in its
    path.

    >>> _address("house", {"BlobEndpoint": "https://house.blob.core.windows.net/"})["dfs_storage_authority"]
    '.dfs.core.windows.net'
    >>> _address("house", {"BlobEndpoint": "http://127.0.0.1:10000/house"})["blob_storage_authority"]
    '127.0.0.1:10000'
    >>> _address("house", {"EndpointSuffix": "core.usgovcloudapi.net"})["blob_storage_authority"]
    '.blob.core.usgovcloudapi.net'
    """
    scheme = given.get("DefaultEndpointsProtocol", "https")
    authority = f".blob.{given.get('EndpointSuffix', 'core.windows.net')}"
    if endpoint := re.match(r"(https?)://([^/]+)", given.get("BlobEndpoint", "")):
        scheme, host = endpoint.groups()
        authority = host.removeprefix(account) if host.startswith(f"{account}.") else host
    return {
        "blob_storage_scheme": scheme,
        "blob_storage_authority": authority,
        "dfs_storage_scheme": scheme,
        "dfs_storage_authority": authority.replace(".blob.", ".dfs.", 1),
    }
