"""Call the kernel that applies a tree of cuts to keys (kernels.c)."""

from __future__ import annotations

from anon.core.kernels import kernel

walk = kernel("content_walk")
