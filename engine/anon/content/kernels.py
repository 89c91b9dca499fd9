"""The kernel that applies a tree of cuts to keys, in kernels.c."""

from __future__ import annotations

from anon.compiled import kernel

walk = kernel("content_walk")
