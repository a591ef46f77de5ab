"""Structured flows beside the free conversation: each a mini-app that asks, understands the answer, and acts."""
