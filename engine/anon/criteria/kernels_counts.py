"""The kernels that several criteria share, in kernels_counts.c."""

from __future__ import annotations

from anon.core.kernels import kernel

fill_largest = kernel("counts_fill_largest")
sizes = kernel("counts_sizes")
occurring = kernel("counts_occurring")
