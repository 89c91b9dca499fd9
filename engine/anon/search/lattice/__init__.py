"""The lattice method: every column at one level for the whole table."""
