"""The bot's own HTTP server: health, metrics, the privacy page and the console; and its logs."""
