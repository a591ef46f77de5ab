"""Document 000's figures: how messages were read and routed since the start."""

from __future__ import annotations

from collections import Counter


class Metrics:
    """Counts messages, each once."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._seconds = 0.0

    def add(self, seconds: float, **holds: bool) -> None:
        """Counts a message. seconds: how long reading it took; holds: which figures count the message."""
        self._seconds += seconds
        self._counts.update(["total_processed", *(name for name, does_hold in holds.items() if does_hold)])

    def figures(self) -> dict[str, int | float | str]:
        """The document's twelve figures, and `routed_to_agent`, our name for `routed_to_gpt5`. A cache hit: the channel
        was known."""
        names = "total_processed routed_to_miniapp awaiting_resolutions soft_context_hits queries_enriched cache_hits"
        counts = {name: self._counts[name] for name in names.split()}
        total = counts["total_processed"]
        routed_to_agent = total - counts["routed_to_miniapp"]
        return {
            **counts,
            "routed_to_agent": routed_to_agent,
            "routed_to_gpt5": routed_to_agent,
            "cache_misses": total - counts["cache_hits"],
            "avg_processing_time_ms": 1000 * self._seconds / total if total else 0.0,
            "miniapp_route_rate": _rate(counts["routed_to_miniapp"], total),
            "enrichment_rate": _rate(counts["queries_enriched"], total),
            "cache_hit_rate": _rate(counts["cache_hits"], total),
        }


def _rate(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.1f}%"
