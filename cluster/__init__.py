"""Several processes of one bot that share a Redis: leases by which they divide its shards, and shared state."""
