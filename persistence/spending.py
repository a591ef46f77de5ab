"""Stores what models were used for and by whom, and drops a person's figures when they are forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from persistence.holders import Forget, Holders, ProcessHolder
from persistence.snapshots import Snapshots
from state.budget import LIMITS, SPENDING
from state.ledger import Ledger
from state.limits import Limits

if TYPE_CHECKING:
    from cluster.accounts import Accounts


class LedgerHolder(ProcessHolder):
    """The ledger's days before today. Forgets people's figures of all days."""

    def __init__(self, ledger: Ledger, snapshots: Snapshots) -> None:
        super().__init__(ledger)
        self._ledger = ledger
        self._snapshots = snapshots

    def forget(self, what: Forget) -> None:
        if what.author_id is not None and what.message_ids is None:
            self._ledger.forget(what.author_id)
            self._snapshots.touch(LIMITS)
            self._snapshots.touch(SPENDING)


class LimitsHolder(ProcessHolder):
    """The limits' state of today. It is encoded in the writer's thread, as it may be of thousands of people."""

    def __init__(self, limits: Limits, accounts: Accounts | None) -> None:
        super().__init__(limits)
        self._accounts = accounts

    def restore(self, channel_id: int, stored: Any) -> None:
        super().restore(channel_id, stored)
        if self._accounts and not stored.get("is_shared"):
            self._accounts.carry_over()


def register_spending(holders: Holders, limits: Limits, snapshots: Snapshots, accounts: Accounts | None) -> None:
    """Registers both holders. The ledger is restored first, as the accounts may have to be told of all of it."""
    holders.register(LedgerHolder(limits.ledger, snapshots), of_process=SPENDING)
    holders.register(LimitsHolder(limits, accounts), of_process=LIMITS)
