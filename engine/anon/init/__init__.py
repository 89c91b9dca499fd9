"""From a table to a first config, before the way of the data (config -> source -> cube -> search -> release -> verify
-> report): `profiling` counts, `proposal` gives every column a role and the reason for it, `writing` makes a commented
config of that."""
