"""Compute what an adversary can do with a grouped table: knowledge skylines, maximum disclosure, attacks."""
