"""File operations that are safe under faults: private folders, locks, writes and renames that survive a crash, removals
that report what they could not remove. Every system call of a start, a publication and a cleanup is made here, so that
tests can make each of them fail."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from anon.errors import EXHAUSTED, ConfigError, ResourceError

LOCK = "lock"
ATTEMPTS = 100  # to lock a folder that other processes remove
NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM}  # EPERM: sandboxes that lack the call
NO_SYNC = {errno.EINVAL, errno.EOPNOTSUPP}  # file systems on which a folder cannot be flushed

_umask_lock = threading.Lock()
_private_users, _umask_before = 0, 0


@contextmanager
def errors_at(field: str, place: Path) -> Iterator[None]:
    """Translate a disk error at a path that the config names into an error of exit code 2 or 6."""
    try:
        yield
    except OSError as error:
        if error.errno in EXHAUSTED:
            raise ResourceError(f"{field}: {place}: {error.strerror}; nothing was published") from error
        found = f"{place}, which cannot be written ({error.strerror})"
        raise ConfigError.at(field, found, "a place in a folder that can") from error


@contextmanager
def private_umask() -> Iterator[int]:
    """Create files that only their owner may read, within this context; yield the previous umask. The umask belongs to
    the whole process: of several threads, the last one to leave the context restores it."""
    global _private_users, _umask_before  # noqa: PLW0603
    with _umask_lock:
        if not _private_users:
            _umask_before = os.umask(0o077)
        _private_users += 1
    try:
        yield _umask_before
    finally:
        with _umask_lock:
            _private_users -= 1
            if not _private_users:
                os.umask(_umask_before)


def make_private(folder: Path, field: str, may_exist: bool = False) -> Path:
    """Make a folder of mode 0700 and return it. With `may_exist`, an existing folder is accepted if it belongs to this
    user and nobody else can use it."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not may_exist:
            raise
    if wrong := not_private(folder):
        raise ConfigError.at(field, f"{folder}, which {wrong}", "no such folder, or a private one of your own")
    return folder


def not_private(folder: Path) -> str:
    """Return why a folder cannot be trusted with personal data; empty if it can."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        return "is a symbolic link" if stat.S_ISLNK(found.st_mode) else "is not a folder"
    if found.st_uid != os.geteuid():
        return "belongs to another user"
    return "other users may use" if found.st_mode & 0o077 else ""


def lock(folder: Path) -> int | None:
    """Lock a private folder and return the handle that holds the lock; None if another process has it."""
    while True:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.lstat(folder / LOCK)):
                return handle
        except BlockingIOError:
            close(handle)
            return None
        except FileNotFoundError:
            pass
        except BaseException:
            close(handle)
            raise
        close(handle)  # the process that held the lock has just removed the file: try again


def make_and_lock(folder: Path, field: str, may_exist: bool = False) -> int | None:
    """Make a private folder and lock it; return the handle of the lock, None if another process holds it."""
    for _ in range(ATTEMPTS):
        with suppress(FileNotFoundError):  # another process took it for an abandoned folder and removed it
            make_private(folder, field, may_exist)
            return lock(folder)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))


def write_durably(path: Path, content: bytes) -> None:
    """Write a small file completely or not at all, and flush it to the disk."""
    new = path.with_name(f"{path.name}.new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        remaining = memoryview(content)
        while remaining:
            written = os.write(handle, remaining)
            if not written:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            remaining = remaining[written:]
        os.fsync(handle)
    finally:
        os.close(handle)
    os.replace(new, path)
    sync_folder(path.parent)


def write_sealed(path: Path, content: Any) -> None:
    """Write data as JSON with its digest, completely or not at all."""
    text = json.dumps(content).encode()
    write_durably(path, hashlib.sha256(text).hexdigest().encode() + b"\n" + text)


def read_sealed(path: Path) -> Any:
    """Return the data of a file that `write_sealed` wrote; raise ValueError if it is damaged."""
    with _opened(path) as file:
        seal, _, text = file.read().partition(b"\n")
    if hashlib.sha256(text).hexdigest().encode() != seal:
        raise ValueError(f"{path} is damaged")
    return json.loads(text)


def sync_tree(folder: Path) -> None:
    """Flush a folder and its whole content to the disk."""
    files, folders = tree_of(folder)
    for file in files:
        _sync(file)
    for each in folders:
        sync_folder(each)


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to the disk."""
    try:
        _sync(folder)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def tree_of(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the files below a folder, and the folder itself with the folders below it, each ordered by name."""
    files: list[Path] = []
    folders = [folder]
    for name in sorted(os.listdir(folder)):
        path = folder / name
        if is_folder(path):
            below = tree_of(path)
            files, folders = files + below[0], folders + below[1]
        else:
            files.append(path)
    return files, folders


def chmod_tree(folder: Path, umask: int) -> None:
    """Give a folder and its whole content the permissions that new files and folders get under a umask."""
    files, folders = tree_of(folder)
    for file in files:
        os.chmod(file, 0o666 & ~umask)
    for each in folders:
        os.chmod(each, 0o777 & ~umask)


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file below a folder, in hexadecimal; raise OSError if one cannot be read."""
    return {file.relative_to(folder).as_posix(): digest(file) for file in tree_of(folder)[0]}


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal; raise OSError if it cannot be read."""
    with _opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _opened(path: Path) -> BufferedReader:
    return open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one step, by Linux's renameat2; return False where the system or the file system lacks
    it."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    here, exchange = -100, 2
    if call(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0:
        return True
    number = ctypes.get_errno()
    if number in NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(first))


def rename(old: Path, new: Path) -> None:
    os.rename(old, new)


def replace(old: Path, new: Path) -> None:
    """Rename a file, in one step, over one that may be there."""
    os.replace(old, new)


def keep(file: Path, copy: Path) -> None:
    """Give a file a second name, which keeps its content when the first is replaced; or copy it where the file system
    has no second names."""
    try:
        os.link(file, copy, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        shutil.copy2(file, copy, follow_symlinks=False)
        _sync(copy)


def make_folders(folder: Path) -> None:
    """Make a private folder, and those above it, where they are missing."""
    if not exists(folder):
        make_folders(folder.parent)
        os.mkdir(folder, 0o700)


def make_like(folder: Path, other: Path) -> None:
    """Make a folder where it is missing, and give it the permissions of another."""
    make_folders(folder)
    os.chmod(folder, stat.S_IMODE(os.stat(other).st_mode))


def remove_if_empty(folder: Path) -> None:
    """Remove a folder if it is there and nothing is in it."""
    with suppress(FileNotFoundError):
        if not os.listdir(folder):
            os.rmdir(folder)


def unlink(path: Path) -> None:
    os.unlink(path)


def close(handle: int) -> None:
    """Close a handle, and release the lock that it holds."""
    with suppress(OSError):
        os.close(handle)


def names(folder: Path) -> list[str]:
    return os.listdir(folder)


def exists(path: Path) -> bool:
    """Return whether anything of this name exists, a broken symbolic link included."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder itself, not a symbolic link to one."""
    return stat.S_ISDIR(os.lstat(path).st_mode)


def remove(path: Path) -> list[OSError]:
    """Remove a file, or a folder with its whole content, as far as possible; return the failures."""
    failures: list[OSError] = []
    try:
        if not is_folder(path):
            os.unlink(path)
            return []
        for name in os.listdir(path):
            failures += remove(path / name)
        os.rmdir(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        failures.append(error)
    return failures


def remove_if_unused(folder: Path) -> None:
    """Remove a locked folder that holds nothing but its lock, unless another process takes it over meanwhile."""
    if names(folder) != [LOCK]:
        return
    os.unlink(folder / LOCK)
    try:
        os.rmdir(folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            raise


def abandon(folder: Path) -> None:
    """Remove a folder that could not be locked, as far as possible, if nobody uses it."""
    with suppress(OSError):
        os.rmdir(folder)
    with suppress(OSError):
        if (handle := lock(folder)) is not None:
            remove_if_unused(folder)
            close(handle)


@contextmanager
def parents(folder: Path, field: str) -> Iterator[None]:
    """Make a folder and those above it where they are missing; at the end remove those that were made and are empty."""
    made: list[Path] = []
    try:
        with errors_at(field, folder):
            for each in reversed((folder, *folder.parents)):
                if not exists(each):
                    os.mkdir(each)
                    made.append(each)
        yield
    finally:
        for each in reversed(made):
            with suppress(OSError):
                os.rmdir(each)
