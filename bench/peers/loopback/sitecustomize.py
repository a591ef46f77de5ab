"""Leads an unmodified discord.py bot to the server that DISCORD_API_BASE and DISCORD_GATEWAY_URL name.

Python imports a module of this name at its start; the folder that it is in stands on PYTHONPATH.
"""

import os

import discord
import yarl

discord.http.Route.BASE = os.environ["DISCORD_API_BASE"]
discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(os.environ["DISCORD_GATEWAY_URL"])
