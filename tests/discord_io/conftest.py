"""The loopback Discord and a client in it, as the playground's own tests have them."""

from tests.playground.conftest import bot, pg

__all__ = ["bot", "pg"]
