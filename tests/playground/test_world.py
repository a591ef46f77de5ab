"""What the world keeps, and that it lets go."""

import asyncio
from collections.abc import Callable

import pytest

from playground.errors import ApiError
from playground.limits import Limiter, Limits, Nonces, Rate
from playground.mentions import named
from playground.model import File
from playground.server import Playground
from playground.world import World


@pytest.fixture
def world() -> World:
    return World(["general"], ["Ada"], bot_name="Parley", now=lambda: 1_700_000_000.0)


@pytest.fixture
def pg() -> Playground:
    """Not listening."""
    return Playground()


def test_ids_grow_even_when_the_clock_stands_still(world: World) -> None:
    ids = [world.next_id() for _ in range(100)]
    assert ids == sorted(set(ids))


def test_a_channel_keeps_the_last_5000_messages(pg: Playground) -> None:
    channel, ada = pg.channel("general"), pg.person("Ada")
    for number in range(5_003):
        pg.post(channel, ada, str(number))
    kept = pg.messages(channel)
    assert (len(kept), kept[0].content, kept[-1].content) == (5_000, "3", "5002")


def test_files_are_kept_up_to_a_hundred(world: World) -> None:
    ids = [world.keep_file(File("x", "text/plain", b"x")) for _ in range(103)]
    assert list(world.files) == ids[3:]


def test_annotations_are_bounded(pg: Playground) -> None:
    for number in range(5_010):
        pg.annotate(number, respond=False, reason="no_trigger", text="x")
    assert len(pg._page._annotations) == 5_000


def test_windows_and_nonces_are_bounded() -> None:
    limiter, nonces = Limiter(Limits(), lambda: 0.0), Nonces(lambda: 0.0)
    for number in range(20_010):
        limiter.take("sends", str(number))
        nonces.note(1, number, "n", number)
    assert (len(limiter._windows), len(nonces._made)) == (20_000, 10_000)


async def test_interactions_are_bounded(pg: Playground) -> None:
    pg.commands.overwrite([{"name": "x", "description": "x"}])
    for _ in range(1_005):
        pg.command(pg.channel("general"), pg.person("Ada"), "x")
    assert len(pg.interactions.recent()) == 1_000


def test_limits_can_be_scaled_and_switched_off() -> None:
    assert Limits().scaled(0.1).sends == Rate(5, 0.5)
    assert Limiter(Limits.off(), lambda: 0.0).take("sends", "1") is None


def test_content_names_users_roles_and_everyone() -> None:
    found = named("<@1> <@!2> <@&3> <#4> <@1> @here <@x>")
    assert (found.users, found.roles, found.everyone) == ((1, 2), (3,), True)
    assert not named("me@everyones.example").everyone


def test_what_cannot_be_is_an_error(pg: Playground) -> None:
    general, ada = pg.channel("general"), pg.person("Ada")
    message = pg.post(general, ada, "x")
    acts: list[Callable[[], object]] = [
        lambda: pg.post(1, ada, "x"),
        lambda: pg.post(general, 1, "x"),
        lambda: pg.post(general, ada, " "),
        lambda: pg.post(general, ada, "x" * 4001),
        lambda: pg.post(general, ada, "x", reply_to=1),
        lambda: pg.edit(message, ""),
        lambda: pg.edit(message, "y", author_id=pg.bot_id),
        lambda: pg.react(message, 1, "👍"),
        lambda: pg.typing(1, ada),
        lambda: pg.click(1, ada, "x"),
        lambda: pg.dm(1),
    ]
    for act in acts:
        with pytest.raises(ApiError):
            act()


async def test_waiting_ends_with_the_change_or_the_timeout(pg: Playground) -> None:
    waiting = asyncio.create_task(pg.wait_for(lambda: pg.messages(pg.channel("help"))))
    await asyncio.sleep(0)
    pg.post(pg.channel("help"), pg.person("Ada"), "x")
    assert [message.content for message in await waiting] == ["x"]
    with pytest.raises(TimeoutError):
        await pg.wait_for(lambda: False, timeout=0.0)
