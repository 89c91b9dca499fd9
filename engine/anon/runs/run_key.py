"""The key of a run: 32 random bytes from which coins are tossed that outsiders cannot compute. It stays in the run
folder, and a later run to the same place uses it again: the same run then gives the same release, and a second release
of the same people does not show other coins for the same decisions. Until the run folder is published the key is in the
checkpoint, so that a run that is stopped resumes with it."""

from __future__ import annotations

import secrets
from pathlib import Path

from anon.config import Config
from anon.config.grammar import tosses_coins
from anon.core import disk
from anon.core.checkpoint import Checkpoint
from anon.core.database import translated
from anon.errors import ConfigError

KEY, BYTES = "run.key", 32


def with_key(config: Config, checkpoint: Checkpoint, run: Path) -> Config:
    """Return the config with the key of its run, which is written into the folder that will be the run folder; the
    config as it is if nothing in it needs one."""
    if not tosses_coins(config):
        return config
    stopped, earlier = checkpoint.folder / KEY, config.release.run / KEY
    with translated("reading the key of the run", disk=True):
        found = next((_read(path) for path in (stopped, earlier) if disk.exists(path)), None)
    key = secrets.token_bytes(BYTES) if found is None else found
    with translated("writing the key of the run", disk=True):
        for path in (stopped, run / KEY):
            disk.write_durably(path, key.hex().encode())
    return config.with_key(key)


def _read(path: Path) -> bytes:
    try:
        key = bytes.fromhex(path.read_bytes().decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != BYTES:
        expected, hint = f"{BYTES} bytes in hexadecimal, as a run wrote them", "without the file, new coins are tossed"
        raise ConfigError.at("release.run", f"a damaged {KEY}", expected, hint)
    return key
