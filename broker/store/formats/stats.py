# SPDX-License-Identifier: Apache-2.0
"""The counters of the store, and the rates that tools show.

Counters are plain integers, added to for a whole batch at once; a sample of them each second gives
the rates of the last 10 seconds, minute and ten minutes.

Java: StoreStatsService.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import Final, NamedTuple

_WINDOWS_S: Final = (10, 60, 600)
_BUCKETS_MS: Final = (0, 10, 50, 100, 200, 500, 1_000, 2_000, 3_000, 4_000, 5_000, 10_000)
_BUCKET_NAMES: Final = (
    "[<=0ms]", "[0~10ms]", "[10~50ms]", "[50~100ms]", "[100~200ms]", "[200~500ms]", "[500ms~1s]",
    "[1~2s]", "[2~3s]", "[3~4s]", "[4~5s]", "[5~10s]", "[10s~]",
)  # fmt: skip
_MINUTE_S: Final = 60


class _Sample(NamedTuple):
    steady_ms: int
    put: int
    found: int
    missed: int
    transferred: int


class StoreStats:
    """Counters of one store since `boot_ms`."""

    def __init__(self) -> None:
        self.boot_ms = 0
        self._boot_steady_ms = 0
        self.put_messages = 0
        self.put_bytes = 0
        self.put_failed = 0
        self.put_max_ms = 0
        self.got_found = 0
        """The number of gets that found messages."""
        self.got_missed = 0
        self.got_messages = 0
        self.get_max_ms = 0
        self._put_times = [0] * len(_BUCKET_NAMES)
        """The messages of this minute, by the time that putting them took."""
        self._last_put_times = list(self._put_times)
        self._samples: deque[_Sample] = deque(maxlen=_WINDOWS_S[-1] + 1)

    def start(self, now_ms: int, steady_ms: int) -> None:
        """Begins counting."""
        self.boot_ms, self._boot_steady_ms = now_ms, steady_ms

    def put(self, count: int, size_bytes: int, failed: int, elapsed_ms: int) -> None:
        """Counts the messages of a batch: how many were stored or not, and how long it took."""
        self.put_messages += count
        self.put_bytes += size_bytes
        if failed:
            self.put_failed += failed
        bucket = 0
        if elapsed_ms:
            bucket = bisect_left(_BUCKETS_MS, elapsed_ms)
            self.put_max_ms = max(self.put_max_ms, elapsed_ms)
        self._put_times[bucket] += count

    def sample(self, steady_ms: int) -> None:
        """Takes a sample; called every second."""
        self._samples.append(
            _Sample(
                steady_ms, self.put_messages, self.got_found, self.got_missed, self.got_messages
            )
        )
        if len(self._samples) % _MINUTE_S == 0:
            self._last_put_times = self._put_times
            self._put_times = [0] * len(_BUCKET_NAMES)

    def runtime_info(self, steady_ms: int) -> dict[str, str]:
        """The figures of StoreStatsService.getRuntimeInfo, by its keys."""
        put = max(self.put_messages, 1)
        return {
            "bootTimestamp": str(self.boot_ms),
            "runtime": _runtime(steady_ms - self._boot_steady_ms),
            "putMessageEntireTimeMax": str(self.put_max_ms),
            "putMessageTimesTotal": str(put),
            "putMessageFailedTimes": str(self.put_failed),
            "putMessageSizeTotal": str(self.put_bytes),
            "putMessageDistributeTime": "".join(
                f"{name}:{count} "
                for name, count in zip(_BUCKET_NAMES, self._last_put_times, strict=True)
            ),
            "putMessageAverageSize": str(self.put_bytes / put),
            "dispatchMaxBuffer": "0",
            "getMessageEntireTimeMax": str(self.get_max_ms),
            "putTps": self._rates("put"),
            "getFoundTps": self._rates("found"),
            "getMissTps": self._rates("missed"),
            "getTotalTps": self._rates("found", "missed"),
            # the key of 5.x, and as 4.9 spells it
            "getTransferredTps": self._rates("transferred"),
            "getTransferedTps": self._rates("transferred"),
            "putLatency99": f"{self._put_latency_ms(0.99):.2f}",
            "putLatency999": f"{self._put_latency_ms(0.999):.2f}",
        }

    def _rates(self, *counters: str) -> str:
        """The rates per second over each window that has samples, separated by blanks."""
        rates = []
        for window_s in _WINDOWS_S:
            if len(self._samples) <= window_s:
                rates.append("")
                continue
            first, last = self._samples[-window_s - 1], self._samples[-1]
            more = sum(getattr(last, each) - getattr(first, each) for each in counters)
            rates.append(str(more * 1000 / max(last.steady_ms - first.steady_ms, 1)))
        return " ".join(rates)

    def _put_latency_ms(self, share: float) -> float:
        """The time in ms within which this share of the messages of the last minute was put."""
        wanted = sum(self._last_put_times) * share
        before_ms = 0
        for until_ms, count in zip(_BUCKETS_MS, self._last_put_times, strict=False):
            if wanted <= count:
                return before_ms + (until_ms - before_ms) * wanted / max(count, 1)
            wanted -= count
            before_ms = until_ms
        return float(before_ms)


def _runtime(elapsed_ms: int) -> str:
    minutes, seconds = divmod(elapsed_ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"
