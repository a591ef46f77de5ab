"""What a message costs: measured in one run against a bare discord.py client, over real sockets."""
