"""Several processes of the bot, which share its shards, over the loopback Discord: killed, taken over, and counted."""
