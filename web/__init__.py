"""The bot's own HTTP, and the watch over its own health."""
