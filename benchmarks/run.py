# SPDX-License-Identifier: Apache-2.0
"""`make bench`: the same loads on official clients, against our broker and the original.

The sides take turns (ours, original, ours, original ...), each with a fresh store and the same
settings; loads that want other settings (SYNC_FLUSH) get servers of their own within the turn. What
counts are the ratios of the medians. Leaves a table here, results.json and ratios.svg in var/bench,
and, when nothing was left out, docs/benchmarks.json, of which docs/generate_benchmarks.py makes
page, plot and what README says. With `--kernel` our broker has two turns: without the compiled
kernel, and with it, for which there is a second table, and results-kernel.json.

    python -m benchmarks.run --rounds 2
    python -m benchmarks.run --quick --only sync64,drain
    python -m benchmarks.run --kernel --only sync64,oneway,batch
    python -m benchmarks.run --sides ours --only sync64 --profile var/bench/broker.prof
"""

import argparse
import json
import os
import pstats
import shutil
import sys
import time
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import loads, official, proc, report, servers
from benchmarks.choices import some_of
from compat_tests.go_client import GoUnavailable
from compat_tests.jars import JarsUnavailable
from txrocketmq.remoting.process.compiled_kernel import VARIABLE, installed_kernel

SIDES: Final = ("ours", "original")
KERNEL: Final[dict[str, str]] = {"ours": "off", "kernel": "require"}
"""What TXROCKETMQ_KERNEL says for the turns of our broker, if both are wanted."""
ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = ROOT / "var" / "bench"
SETTLE_S: Final = 3.0
PUBLISHED: Final = ROOT / "docs" / "benchmarks.json"
FULL: Final = loads.Windows(warm_up_ms=4000, window_ms=6000, drain_messages=1_000_000)
QUICK: Final = loads.Windows(warm_up_ms=2000, window_ms=3000, drain_messages=400_000)


def turn(
    side: servers.Side, chosen: list[loads.Load], windows: loads.Windows, profile: Path | None
) -> report.Round:
    """Runs one side's turn, from the start of its servers to their end.

    A load that fails is reported and leaves no sample. Raises ServerError.
    """
    rounds = [
        _servers(side, wanted, list(wanting), windows, profile)
        for wanted, wanting in groupby(sorted(chosen, key=_wanted), _wanted)
    ]
    samples = tuple(sample for each in rounds for sample in each.samples)
    return report.Round(side, rounds[0].start_seconds, rounds[0].idle_bytes, samples)


class _Wanted(NamedTuple):
    """What loads require of the servers."""

    release: str
    settings: tuple[tuple[str, str], ...]
    slave: bool


def _wanted(load: loads.Load) -> _Wanted:
    return _Wanted(load.release, load.broker, load.slave)


def _servers(
    side: servers.Side,
    wanted: _Wanted,
    chosen: list[loads.Load],
    windows: loads.Windows,
    profile: Path | None,
) -> report.Round:
    """Runs the loads that want the same servers one after the other."""
    samples = []
    release, settings, slave = wanted
    with servers.running(
        side, OUTPUT, profile=profile, settings=dict(settings), release=release, slave=slave
    ) as running:
        told = f" for {', '.join(load.name for load in chosen)}" if settings or slave else ""
        told += f", {release}" if side == "original" else ""
        print(f"{side}{told}: {running}", flush=True)
        time.sleep(SETTLE_S)
        idle_bytes = proc.anonymous_bytes(running.namesrv_pid)
        idle_bytes += proc.anonymous_bytes(running.broker_pid)
        for load in chosen:
            try:
                sample = loads.run(load, running, windows)
            except loads.LoadError as error:  # the other loads still have results
                print(f"  {error}", flush=True)
                continue
            samples.append(sample)
            print(f"  {_line(sample)}", flush=True)
    if slave:  # its master accepts no send before it is there
        return report.Round(side, None, None, tuple(samples))
    return report.Round(side, running.start_seconds, idle_bytes, tuple(samples))


def _line(sample: loads.Sample) -> str:
    latency = "" if sample.p50_ms is None else f", p50 {sample.p50_ms} ms, p99 {sample.p99_ms} ms"
    failed = f", {sample.failed} refused ({sample.first_error})" if sample.failed else ""
    if sample.slave_behind_ms is not None:
        latency += f", slave {sample.slave_behind_ms:,.0f} ms behind"
    busy = f", others used {sample.others_cores:.1f} cores" if sample.others_cores >= 0.1 else ""
    rate = f"{sample.load:<19}{sample.rate:>10,.0f} msg/s"
    return f"{rate},{sample.broker_cpu_us:>7.2f} us CPU a message{latency}{failed}{busy}"


def _arguments(argv: list[str]) -> argparse.Namespace:
    names = [load.name for load in loads.LOADS]
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2, help="turns of each side")
    parser.add_argument("--only", type=some_of(names), default=names, metavar="LOADS")
    parser.add_argument("--sides", type=some_of(SIDES), default=list(SIDES))
    parser.add_argument("--quick", action="store_true", help="short windows, one round")
    parser.add_argument(
        "--kernel", action="store_true", help="also with the compiled kernel: `make kernel`"
    )
    parser.add_argument("--profile", type=Path, help="cProfile statistics of our broker")
    options = parser.parse_args(argv)
    if options.profile and options.sides != ["ours"]:
        parser.error("--profile slows our broker down: use it with --sides ours, not to compare")
    if options.kernel:
        if isinstance(reason := installed_kernel(), str):
            parser.error(f"--kernel: {reason}")
        options.sides = [
            each for each in ("ours", "kernel", "original") if each in {*options.sides, "kernel"}
        ]
    return options


def _missing() -> str | None:
    absent = [command for command in ("java", "javac") if shutil.which(command) is None]
    return f"the benchmark needs {' and '.join(absent)} on the PATH" if absent else None


def main(argv: list[str]) -> int:
    """Takes turns, prints the table, writes the files.

    Returns 0 when everything was measured, even if goals were missed, and 1 when a load or a server
    failed.
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
        for release in {load.release for load in chosen}:
            official.load_classpath(release)
        if any(load.go for load in chosen):
            official.go_program()
        for _ in range(1 if options.quick else options.rounds):
            for side in options.sides:
                if options.kernel:
                    os.environ[VARIABLE] = KERNEL.get(side, "off")
                rounds.append(turn(side, chosen, windows, profile))
    except (
        servers.ServerError,
        official.LoadNotCompiled,
        JarsUnavailable,
        GoUnavailable,
    ) as error:
        print(f"benchmarks.run: {error}", file=sys.stderr)
        return 1
    if profile:
        pstats.Stats(str(profile)).sort_stats("tottime").print_stats(25)
    complete = all(len(turn.samples) == len(chosen) for turn in rounds)
    _publish([each for each in rounds if each.side != "kernel"], "results", quick=options.quick)
    if options.kernel:
        others = [each for each in rounds if each.side != "ours"]
        others = [replace(each, side="ours") if each.side == "kernel" else each for each in others]
        print("\nwith the compiled kernel:")
        _publish(others, "results-kernel", quick=options.quick)
    if complete and chosen == list(loads.LOADS) and len(options.sides) > 1:
        shutil.copyfile(OUTPUT / "results.json", PUBLISHED)
        print(f"Written: {PUBLISHED}; python -m docs.generate_benchmarks makes the pages of it")
    return 0 if complete else 1


def _publish(rounds: list[report.Round], name: str, *, quick: bool) -> None:
    of_rows = report.rows(rounds)
    results, ratios = OUTPUT / f"{name}.json", OUTPUT / f"{name.replace('results', 'ratios')}.svg"
    measured = {"date": time.strftime("%Y-%m-%d"), "quick": quick}
    content = {**measured, **report.as_json(rounds, official.machine())}
    results.write_text(json.dumps(content, indent=1) + "\n")
    drawn = report.plot(of_rows, ratios)
    print(f"\n{report.table(of_rows)}\n")
    busiest = max((s.others_cores for turn in rounds for s in turn.samples), default=0.0)
    if busiest >= 0.2:
        print(f"Other processes used up to {busiest:.1f} cores meanwhile: run again when quiet.")
    print(f"Written: {results}" + (f", {ratios}" if drawn else ""))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
