"""Judge a grouped table as an outsider would, and compare a written release with its source."""
