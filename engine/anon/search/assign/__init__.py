"""Assign individuals to groups one by one (merge, colour)."""
