"""What a release gives away, beyond the verdicts of its criteria: looks at groups as `check` and verify see them,
beside the way of the data (config -> source -> cube -> search -> release -> verify -> report), and changes nothing.

The package can be called: it is `anon.explore(config, table, ...)` too, whose name importing a part of it takes."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import anon

_command: Any = anon.explore


class _Package(ModuleType):
    __call__ = staticmethod(_command)


sys.modules[__name__].__class__ = _Package
