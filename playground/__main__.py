"""`python -m playground [PORT]`: a Discord on this machine without the bot, to try out the set-up."""

import asyncio
import secrets
import sys

from playground.server import Playground

PORT = 8321


async def main(port: int) -> None:
    """Serves the playground until interrupted."""
    loopback = Playground(port=port, token=secrets.token_urlsafe(32), decisions=False)
    loopback.remove_bot()
    async with loopback:
        sys.stdout.write(
            f"Open {loopback.url} in a browser: a Discord on this machine, without the bot so far.\n"
            "In another terminal this leads the bot there, in place of Discord's own:\n\n"
            f"    export DISCORD_API_BASE={loopback.api_base} DISCORD_GATEWAY_URL={loopback.gateway_url}\n"
            "    make setup\n\n"
            f"Its token: {loopback.token}\n"
        )
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else PORT))
    except KeyboardInterrupt:
        pass
    except (OSError, ValueError) as error:
        sys.exit(f"It cannot listen there ({error}): name a free port, such as 8322.")
