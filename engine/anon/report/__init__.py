"""What a run or a check found, as plain data and in words."""
