"""The figures and tables of the five papers, one function each; `bench/paper.py` is the command."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]  # the benches' own modules, and demo
