"""What `python bot.py` does: runs the bot, or one of its other commands."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import structlog

from agents.models import DEMO, UnusableModelError
from agents.tracing import traced_calls
from config import SettingError, Settings, load_settings
from decider import load_followup
from environment import check_token, misspelt, secrets_of
from owner import apart_in_playground, where
from persistence.lock import InUseError, in_use
from persistence.move_command import move_command
from persistence.open_store import check_stores, find_seal
from persistence.sessions_command import sessions_command
from service import DecisionsOnPage, RefusedError, playground, serve, sharing
from setting_values import is_loopback
from shards import Shards
from storage.store import StoreError, WrongKeyError
from web.logs import configure_logging

log = structlog.get_logger()

ON_WHAT_IS_KEPT = {"sessions": sessions_command, "move": move_command}
USAGE = """\
usage: python bot.py [doctor | sessions | move] [-h]

Without a command it runs the bot. Settings come from the environment and from .env (docs/settings.md).

  doctor    finds out what is wrong with the bot and around it, and says how to fix it
  sessions  lists, shows, exports or deletes what is stored of each channel
  move      copies what is stored from STATE_DIR into Redis, or back
"""
M_ARENA_MAX = -8  # in malloc.h
YOUNG_OBJECTS = 5_000  # Python's own is 700


class CreateBot(Protocol):
    """bot.create_bot."""

    def __call__(self, settings: Settings, **options: Any) -> Any: ...


def command_line(arguments: Sequence[str], create_bot: CreateBot) -> int:
    """Runs the bot until it is told to stop, or runs the given command. Returns the exit code."""
    if arguments and arguments[0] in ("-h", "--help"):
        sys.stdout.write(USAGE)
        return 0
    if arguments and arguments[0] not in ("doctor", *ON_WHAT_IS_KEPT):
        sys.stderr.write(
            f"{arguments[0]!r} is not a command: use doctor, sessions or move, or none to start the bot.\n"
        )
        return 2
    if arguments[:1] == ["doctor"]:
        from doctor.command import doctor_command  # noqa: PLC0415 - a start does without

        return doctor_command(arguments[1:], partial(commands_of, create_bot))
    try:
        settings = load_settings()
        check_token(settings, os.environ)
        settings = apart_in_playground(settings)
        configure_logging(settings.log_level, secrets_of(settings))
        for name, meant in misspelt(os.environ).items():
            log.warning("unknown_setting", variable=name, likely_meaning=meant)
        if arguments:
            return on_what_is_kept(arguments, settings)
        tune_memory()
        if settings.model == DEMO:
            log.warning("demo_model", meaning="answers only repeat what was said", remedy="set MODEL and its key")
        state_dir, redis_url, key = where(settings)
        with in_use(state_dir, None if settings.is_one_of_several else redis_url):
            try:
                check_stores(state_dir, redis_url, key)
            except ValueError as error:
                raise SettingError(f"{error}.") from None
            with traced_calls():
                return asyncio.run(run(settings, create_bot))
    except (SettingError, UnusableModelError, RefusedError, WrongKeyError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except (InUseError, OSError) as error:
        sys.stderr.write(f"{_sentence(error)}\n")
        return 1


def _sentence(error: InUseError | OSError) -> str:
    """Says what ended the start. Raises an error that should not occur."""
    if isinstance(error, (InUseError, StoreError)):
        return str(error)
    if error.errno in (errno.EMFILE, errno.ENFILE):  # raised wherever a file is opened, as by an import
        return "Too many files are open: raise the limit of open files (`ulimit -n`), or close others."
    raise error


def on_what_is_kept(arguments: Sequence[str], settings: Settings) -> int:
    """Runs sessions or move. Returns the exit code. Raises SettingError for malformed keys."""
    place = where(settings)
    try:
        find_seal(*place)
    except ValueError as error:
        raise SettingError(f"{error}.") from None
    try:
        code = ON_WHAT_IS_KEPT[arguments[0]](arguments[1:], *place)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads what is printed, such as `head`, wants no more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to print cannot fail at exit
        return 1
    return code


def tune_memory() -> None:
    """Sets how this process allocates and frees memory. To be called before any thread is started.

    All threads share one arena of glibc's malloc: in an arena of its own each would keep some 10 MB. The garbage
    collector looks at new objects at each YOUNG_OBJECTS, when nearly all that a message left behind is freed already.
    """
    gc.set_threshold(YOUNG_OBJECTS)
    with suppress(AttributeError, OSError, TypeError):  # another C library; none; Windows
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


async def run(settings: Settings, create_bot: CreateBot) -> int:
    """Runs the bot, without a token in the playground. Returns the exit code."""
    followup = load_followup(settings.followup_eagerness, settings.followup_window_seconds)
    make_bot = partial(create_bot, followup=followup)
    gc.disable()  # as in bot.py: building the model imports its provider's modules
    make_bot(settings)  # fails here, before anything else begins, if the model cannot be built
    gc.freeze()  # modules stay for good: walking through them blocked the event loop for 0.3 s at each collection
    gc.enable()
    password = settings.console_password.get_secret_value() if settings.console_password else None
    serve_it = partial(serve, password=password, shows_content=settings.console_show_content)
    if settings.discord_token:
        make_bot, token = partial(make_bot, settings), settings.discord_token.get_secret_value()
        if settings.is_one_of_several and settings.redis_url:
            url, count, ids = settings.redis_url.get_secret_value(), settings.shard_count, settings.shard_ids
            async with sharing(url, count, ids) as keeper:
                make_bot = partial(make_bot, shards=keeper.shards, cluster=keeper.cluster)
                return await serve_it(make_bot, token, settings.port, keeper=keeper)
        if settings.shard_count:
            make_bot = partial(make_bot, shards=Shards(settings.shard_count, settings.shard_ids or None))
        if settings.shard_ids:
            log.warning("shards_without_redis", meaning="budgets and opt-outs apply to this process alone")
        return await serve_it(make_bot, token, settings.port)
    async with playground(settings.playground_host, settings.playground_port) as loopback:
        here = {"discord_api_base": loopback.api_base, "discord_gateway_url": loopback.gateway_url}
        there = settings.model_copy(update=here)
        make_bot = partial(make_bot, there, observer=DecisionsOnPage(loopback), is_playground=True)
        is_local = is_loopback(settings.playground_host)
        return await serve_it(make_bot, loopback.token, settings.port, is_local=is_local)


def commands_of(create_bot: CreateBot, settings: Settings) -> list[dict[str, Any]]:
    """The commands that the bot registers, as sent to Discord. Raises as create_bot() does."""
    tree = create_bot(settings).tree
    return [dict(command.to_dict(tree)) for command in tree.get_commands()]
