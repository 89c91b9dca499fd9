"""Provide what every other package builds on: the database, memory and disk, text of values, progress and kernels."""
