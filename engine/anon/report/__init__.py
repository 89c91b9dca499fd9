"""What a run or a check found, as plain data, in words and as a page."""
