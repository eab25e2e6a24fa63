# SPDX-License-Identifier: Apache-2.0
"""`make bench`: the same loads on the official Java client, against our broker and the original.

The sides take turns (ours, original, ours, original ...), each with a fresh store and the same
settings (ASYNC_FLUSH); what counts are the ratios of the medians. Leaves a table here, and
results.json and ratios.png in var/bench.

    python -m benchmarks.run --rounds 2
    python -m benchmarks.run --quick --only sync64,drain
    python -m benchmarks.run --sides ours --only sync64 --profile var/bench/broker.prof
"""

import argparse
import json
import pstats
import shutil
import sys
import time
from pathlib import Path
from typing import Final

from benchmarks import loads, official, proc, report, servers
from compat_tests.jars import JarsUnavailable

ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = ROOT / "var" / "bench"
SETTLE_S: Final = 3.0
FULL: Final = loads.Windows(warm_up_ms=5000, window_ms=8000, drain_messages=2_000_000)
QUICK: Final = loads.Windows(warm_up_ms=2000, window_ms=3000, drain_messages=400_000)


def turn(
    side: servers.Side, chosen: list[loads.Load], windows: loads.Windows, profile: Path | None
) -> report.Round:
    """One side's turn, from the start of its servers to their end.

    A load that fails says so and leaves no sample. Raises ServerError.
    """
    samples = []
    with servers.running(side, OUTPUT, profile=profile) as running:
        print(f"{side}: {running}", flush=True)
        time.sleep(SETTLE_S)
        idle_bytes = proc.anonymous_bytes(running.namesrv_pid)
        idle_bytes += proc.anonymous_bytes(running.broker_pid)
        for load in chosen:
            try:
                sample = loads.run(load, running, windows)
            except loads.LoadError as error:  # the other loads still tell something
                print(f"  {error}", flush=True)
                continue
            samples.append(sample)
            print(f"  {_line(sample)}", flush=True)
    return report.Round(side, running.start_seconds, idle_bytes, tuple(samples))


def _line(sample: loads.Sample) -> str:
    latency = "" if sample.p50_ms is None else f", p50 {sample.p50_ms} ms, p99 {sample.p99_ms} ms"
    failed = f", {sample.failed} refused ({sample.first_error})" if sample.failed else ""
    busy = f", others used {sample.others_cores:.1f} cores" if sample.others_cores >= 0.1 else ""
    return (
        f"{sample.load:<8}{sample.rate:>10,.0f} msg/s,{sample.broker_cpu_us:>7.2f} us CPU a message"
        f"{latency}{failed}{busy}"
    )


def _arguments(argv: list[str]) -> argparse.Namespace:
    names = [load.name for load in loads.LOADS]
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2, help="turns of each side")
    parser.add_argument("--only", type=lambda text: text.split(","), default=names, metavar="LOADS")
    parser.add_argument("--sides", type=lambda text: text.split(","), default=["ours", "original"])
    parser.add_argument("--quick", action="store_true", help="short windows, one round")
    parser.add_argument("--profile", type=Path, help="cProfile statistics of our broker")
    options = parser.parse_args(argv)
    for given, known in ((options.only, names), (options.sides, ["ours", "original"])):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"no such name: {', '.join(unknown)} (there are: {', '.join(known)})")
    if options.profile and options.sides != ["ours"]:
        parser.error("--profile slows our broker down: use it with --sides ours, not to compare")
    return options


def _missing() -> str | None:
    absent = [command for command in ("java", "javac") if shutil.which(command) is None]
    return f"the benchmark needs {' and '.join(absent)} on the PATH" if absent else None


def main(argv: list[str]) -> int:
    """Takes turns, prints the table, writes the files.

    Answers 0 when everything was measured, goals met or missed, and 1 when a load or server failed.
    """
    options = _arguments(argv)
    if reason := _missing():
        print(f"benchmarks.run: {reason}", file=sys.stderr)
        return 1
    chosen = [load for load in loads.LOADS if load.name in options.only]
    windows = QUICK if options.quick else FULL
    profile = options.profile.resolve() if options.profile else None
    OUTPUT.mkdir(parents=True, exist_ok=True)
    rounds: list[report.Round] = []
    try:
        official.load_classpath()
        for _ in range(1 if options.quick else options.rounds):
            rounds.extend(turn(side, chosen, windows, profile) for side in options.sides)
    except (
        servers.ServerError,
        official.LoadNotCompiled,
        JarsUnavailable,
    ) as error:
        print(f"benchmarks.run: {error}", file=sys.stderr)
        return 1
    if profile:
        pstats.Stats(str(profile)).sort_stats("tottime").print_stats(25)
    _publish(rounds)
    return 0 if all(len(turn.samples) == len(chosen) for turn in rounds) else 1


def _publish(rounds: list[report.Round]) -> None:
    of_rows = report.rows(rounds)
    results, ratios = OUTPUT / "results.json", OUTPUT / "ratios.png"
    results.write_text(json.dumps(report.as_json(rounds, official.machine()), indent=2) + "\n")
    drawn = report.plot(of_rows, ratios)
    print(f"\n{report.table(of_rows)}\n")
    busiest = max((s.others_cores for turn in rounds for s in turn.samples), default=0.0)
    if busiest >= 0.2:
        print(f"Other processes used up to {busiest:.1f} cores meanwhile: run again when quiet.")
    print(f"Written: {results}" + (f", {ratios}" if drawn else ""))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
