"""Searches for a safe release. Each ends in a recoding."""
