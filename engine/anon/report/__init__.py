"""Report what a run or a check found: as plain data, on a terminal and as an HTML page."""
