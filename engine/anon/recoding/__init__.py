"""Represent the result of a search: a tree of cuts, levels of hierarchies, or a group for each record."""
