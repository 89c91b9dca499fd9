"""Profile a table and propose a first config for it (`anon init`)."""
