"""Search for a safe release. Each search returns a recoding, or an assignment of individuals to groups."""
