"""Put individuals into groups one by one (merge, colour)."""
