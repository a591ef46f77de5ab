"""TLS of connections to servers that are not Discord's."""

from __future__ import annotations

from functools import cache
from ssl import SSLContext, create_default_context


@cache
def tls_context() -> SSLContext:
    """The context that aiohttp makes by default, without slow ciphers."""
    context = without_slow_ciphers(create_default_context())
    context.set_alpn_protocols(["http/1.1"])
    return context


def without_slow_ciphers(context: SSLContext) -> SSLContext:
    """The context without the ciphers of TLS 1.2 for which a server names a prime, of up to 10,000 bits: a handshake
    with that takes 0.9 s, in one go. Servers that have these have others, too."""
    names = (cipher["name"] for cipher in context.get_ciphers())
    context.set_ciphers(":".join(name for name in names if not name.startswith("DHE-")))
    return context
