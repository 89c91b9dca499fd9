"""Search by recursive cuts from the top (SkylineAnonymize, Mondrian)."""
