"""Measure how much of the source a release keeps."""
