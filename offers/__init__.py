"""Offers of help that nobody asked for: triggers, rate limits, and the offers themselves."""
