"""A simulated week: what the bot offers unasked in busy channels, and whether it keeps to its own limits."""
