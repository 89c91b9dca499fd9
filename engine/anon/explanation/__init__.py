"""Find out why a run came to its release, and what looser criteria would give."""
