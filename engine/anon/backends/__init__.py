"""Where a run takes place, when that is not this machine: the same stages (config -> source -> cube -> search ->
release -> verify -> report) with the records elsewhere. A backend is imported only when a config asks for it."""
