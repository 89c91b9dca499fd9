"""A differential fuzz of the searches and of `check` against the oracles: tables are built by structure (balanced
values, exact ties, one value, exactly k people, exactly l values, hierarchies of one child, nulls) and thresholds are
put where they are just reached or just missed. A case is a function of its seed alone.

    cases      a case as plain data, in the terms of the config and of the oracles
    tables     generates quasi-identifiers with their hierarchies, and the people of a table
    criteria   generates criteria with their parameters
    generate   generates a case of each family from a seed
    engine     builds the engine's cube of a case and runs a search on it, in this process
    partition, lattice, assigning, checking, whole
               compare one family of cases with the oracles
"""
