"""Keyed hashes of individuals. A ledger holds no id: of each released individual it has the first 128 bits of the
HMAC-SHA256 of the id's text under a random key of the series.

Two of n individuals have the same 128 bits with a probability below n^2 / 2^129: with a billion individuals below
1.5e-21. If it happened, one of the two would be taken for released and left out: nobody would be in two parts. Without
the key, the hash of an id cannot be computed; with it, ids that are few can be tried out, so the key stays in the
ledger folder, which only its owner may read."""

from __future__ import annotations

import hmac
import secrets

from anon.core.database import Database

KEY, BLOCK = 32, 64  # bytes of a key, and of a block of SHA-256
INNER, OUTER = "hash_inner", "hash_outer"  # variables of the connection, so that no query has the key


def new_key() -> str:
    """Return a random key in hexadecimal."""
    return secrets.token_hex(KEY)


def set_key(database: Database, key: str) -> None:
    """Give a connection the key that `hashed` uses."""
    padded = bytes.fromhex(key).ljust(BLOCK, b"\0")
    for name, pad in ((INNER, 0x36), (OUTER, 0x5C)):
        database.execute(f"SET VARIABLE {name} = $1", [bytes(byte ^ pad for byte in padded)])


def hashed(text: str) -> str:
    """Return SQL for the HMAC-SHA256 of a text, in hexadecimal (RFC 2104)."""
    inner = f"unhex(sha256(getvariable('{INNER}') || encode({text})))"
    return f"sha256(getvariable('{OUTER}') || {inner})"


def first_128(digest: str) -> str:
    """Return SQL for the first 128 bits of a hexadecimal digest, from which `halves` makes its columns too."""
    return f"{digest}[1:32]"


def joined() -> str:
    """Return SQL for what `first_128` gives, of the columns `hi` and `lo`."""
    return "format('{:016x}{:016x}', hi, lo)"


def halves(digest: str) -> str:
    """Return SQL for the columns `hi` and `lo`, the first 128 bits of a hexadecimal digest."""
    return f"('0x' || {digest}[1:16])::UBIGINT AS hi, ('0x' || {digest}[17:32])::UBIGINT AS lo"


def hash_of(key: str, text: str) -> tuple[int, int]:
    """Return what `halves` of `hashed` gives for one text."""
    digest = hmac.digest(bytes.fromhex(key), text.encode(), "sha256")
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:16], "big")
