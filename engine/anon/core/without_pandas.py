"""Keep pyarrow from loading pandas in the process of a command. pyarrow loads it wherever it is installed, which takes
47 MB of `limits.memory` and some tenths of a second; only Spark uses it."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec


class _Refusal:
    """A finder of modules that says that pandas is not installed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("anon does not load pandas", name=name)
        return None


_refusal = _Refusal()


def refuse() -> None:
    """Refuse to load pandas from now on."""
    sys.meta_path.insert(0, _refusal)


def allow() -> None:
    """Allow pandas to be loaded again."""
    if _refusal in sys.meta_path:
        sys.meta_path.remove(_refusal)
