"""Implement the commands other than `run`, for the command line and for Python."""
