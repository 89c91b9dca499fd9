"""Represent what a search ends in: a tree of cuts, levels of hierarchies, or a group for each record."""
