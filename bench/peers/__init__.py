"""The bot beside its peers, in one run: `python -m bench.peers`."""
