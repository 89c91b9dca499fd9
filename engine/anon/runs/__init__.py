"""Manage a run around the pipeline: its folders, the previous release, publication."""
