"""What a run or a check found, as plain data, in words and as a page."""

VERSION = 4  # of report.json
