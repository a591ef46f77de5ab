"""Outages of the store and the gateway, as they are told."""

from __future__ import annotations

from activity import Activity, FaultKind
from health import Health
from persistence.snapshots import Snapshots
from persistence.watch import USUAL_SECONDS, Watch
from state.consent import Consent, Forgotten
from state.optout import OptOut
from storage.store import Store, StoreError
from tests.support.observed import Observed


def refused() -> Store:
    raise StoreError("the disk is full of secrets")


async def test_an_outage_is_told_once() -> None:
    now, observed, activity = [0.0], Observed(), Activity()
    activity.watch(observed)
    health, snapshots = Health(lambda: now[0]), Snapshots(refused, Consent(OptOut(), Forgotten()))
    health.gateway_up()
    watch = Watch(activity, health, snapshots)
    watch.look()
    assert not observed.faults
    health.gateway_down()
    for _ in range(2):
        snapshots.store_row("people", 1, b"true")
        assert not await snapshots.settled()
    now[0] += USUAL_SECONDS + 1
    for _ in range(2):
        watch.look()
    assert [fault.kind for fault in observed.faults] == [FaultKind.STORE, FaultKind.GATEWAY]
    assert not any("secret" in fault.says for fault in observed.faults)
    health.gateway_up()
    watch.look()
    health.gateway_down()
    now[0] += USUAL_SECONDS + 1
    watch.look()
    assert [fault.kind for fault in observed.faults][2:] == [FaultKind.GATEWAY]
