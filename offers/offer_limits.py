"""Rate limits and quiet hours for offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from setting_values import QuietHours

DAY = timedelta(days=1)
MAX_COOLDOWN_SECONDS = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class OfferLimits:
    """Limits that hold in every channel.

    timeout_seconds: how long an offer or a conversation stays open without an interaction. cooldown_seconds: how long
    after that no offer is made. per_day: how many offers are made in any 24 hours.
    """

    timeout_seconds: float = 600.0
    cooldown_seconds: float = 1_800.0
    per_day: int = 3
    quiet_hours: QuietHours | None = None

    def cooldown_after(self, setbacks: int) -> float:
        """Seconds of the cooldown after `setbacks` offers in a row were ignored or declined.

        Each doubles it, up to a week. A cooldown that is set to more than a week stays as it is.
        """
        longest = max(self.cooldown_seconds, MAX_COOLDOWN_SECONDS)
        return min(self.cooldown_seconds * 2.0 ** min(setbacks, 60), longest)

    def is_quiet(self, now: datetime) -> bool:
        """Whether it is one of the quiet hours."""
        if self.quiet_hours is None:
            return False
        start, end, zone = self.quiet_hours
        here = now.astimezone(zone).time()
        return start <= here < end if start <= end else here >= start or here < end


def of_the_last_day(made: Sequence[datetime], now: datetime) -> list[datetime]:
    """The times in the last 24 hours. The next 24 hours count, too: the clock may have been set back."""
    return [at for at in made if abs(now - at) < DAY]
