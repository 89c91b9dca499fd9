"""Series of releases that are safe together: the ledger, who is new, and how a part is added."""
