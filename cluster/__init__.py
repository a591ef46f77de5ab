"""Several processes of one bot, which share a Redis: leases by which they divide its shards, and what they share."""
