"""Which shards a process has."""

from shards import Shards

GUILD = 81_384_788_765_712_384  # the example of Discord's API reference


def test_guilds_are_spread_by_discords_formula() -> None:
    shards = Shards(16, [5, 0])
    assert shards.of(GUILD) == (GUILD >> 22) % 16
    assert shards.of(0) == 0  # direct messages
    assert [shards.has(1 << 22), shards.has(5 << 22), shards.has(0)] == [False, True, True]
    assert (shards.ids, shards.home) == ([5, 0], 5)
    shards.add(1)
    assert shards.has(1 << 22)


def test_a_process_alone_has_all_however_many_there_are() -> None:
    shards = Shards()
    assert shards.are_all
    assert shards.has(GUILD)
    assert (shards.ids, shards.home) == ([0], 0)
    shards.count = 3
    assert shards.ids == [0, 1, 2]
