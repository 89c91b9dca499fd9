"""The kernels of the lattice search, in kernels.c."""

from __future__ import annotations

from anon.core.kernels import kernel

cell_keys = kernel("lattice_cell_keys")
count_cells = kernel("lattice_count_cells")
count_entries = kernel("lattice_count_entries")
collapse = kernel("lattice_collapse")
