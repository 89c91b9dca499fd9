"""What a release gives away, beyond the verdicts of its criteria: looks at groups as `check` and verify see them,
beside the way of the data (config -> source -> cube -> search -> release -> verify -> report), and changes nothing."""
