#!/usr/bin/env python3
"""What limits a cluster of N workers: a discrete-event model of one job, with the constants that
constants.py measured.

usage: scaling.py [--constants FILE] [--workers N,..] [--graphs G] [--shards S] [--markdown]
       scaling.py --check FILE        against real runs (scaling_check.py writes the file)

The model: workers take shards, evaluate their graphs and send each store its share; then parts of
the buckets are read back, collected and written down; one worker joins them; the coordinator
reduces on one thread and has its candidates proved. A coordinator and a store serve one call at a
time, each on one core; a machine's network moves NETWORK bytes a second. Everything takes its mean,
but for shards, which spread as hashed units do.
"""
import argparse
import heapq
import json
import math
import os
import random

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NETWORK = 1.25e9   # Bytes per second and machine: 10 Gbit/s.
BEAT = 5.0         # Seconds between the heartbeats of a node (a third of the lease).
SHARD_SPREAD = 0.1  # Standard deviation of a shard's size by its mean.


class Server:
    """Serves one after another."""

    def __init__(self) -> None:
        self.free, self.busy = 0.0, 0.0

    def use(self, now: float, seconds: float) -> float:
        self.free = max(self.free, now) + seconds
        self.busy += seconds
        return self.free


class Run:
    """One job. `phases` has (name, seconds, limit)."""

    def __init__(self, c: dict, *, workers: int, stores: int, graphs: float, shards: int,
                 parts: int, verifiers: int, slowdown: float = 1.0):
        self.c, self.workers, self.graphs = c, workers, graphs
        self.shards, self.parts, self.verifiers = shards, parts, verifiers
        self.slowdown = slowdown  # Wall seconds for a CPU second, where cores are shared.
        self.coordinator, self.stores = Server(), [Server() for _ in range(stores)]
        self.now = 0.0
        self.phases: list[tuple[str, float, str]] = []
        self.calls = self.bytes = 0.0
        # The part with the largest class, which lies in one bucket: n (n - 1) / 2 pairs bound it.
        self.hot = min(1.0, math.sqrt(2 * c["pairs_per_graph"] * graphs) / graphs)
        random.seed(1)

    def phase(self, name: str, sizes: list[float], work) -> None:
        """Every task goes to whoever asks first; `work(size, first)` yields what it needs, in turn:
        a number of CPU seconds of the worker, or (server, seconds)s, all of them at once."""
        begin, tasks = self.now, list(reversed(sizes))
        before = {"the coordinator": self.coordinator.busy,
                  "a store": max(s.busy for s in self.stores)}
        worked = 0.0
        call = self.c["task_cpu_16"] / 2 * self.slowdown

        def worker():
            first = True
            while tasks:
                size = tasks.pop()
                self.calls += 2
                yield [(self.coordinator, call)]
                yield from work(size, first)
                first = False
                yield [(self.coordinator, call)]
                yield self.c["task_wall_1"] / 2  # What is acknowledged is on disk.

        events, number, last = [], 0, begin
        for _ in range(self.workers):
            heapq.heappush(events, (begin, number, worker()))
            number += 1
        while events:
            now, _, process = heapq.heappop(events)
            need = next(process, None)
            if need is None:
                last = max(last, now)
                continue
            if isinstance(need, float):
                after = now + need
                worked += need
            else:
                after = max(server.use(now, seconds) for server, seconds in need)
            heapq.heappush(events, (after, number, process))
            number += 1
        seconds = last - begin
        self.now = last
        used = {"the coordinator": (self.coordinator.busy - before["the coordinator"]) / seconds
                                   + self.workers / BEAT * self.c["beat_cpu"],
                "a store": (max(s.busy for s in self.stores) - before["a store"]) / seconds,
                "the workers": worked / seconds / self.workers}
        limit, share = max(used.items(), key=lambda item: item[1])
        if len(sizes) < 3 * self.workers and share < 0.9:
            limit = "one task" if len(sizes) == 1 else f"{len(sizes)} tasks"
        self.phases.append((name, seconds, limit))

    def move(self, size: float, cpu_per_byte: float) -> list:
        """To or from all stores, each its share."""
        share = size / len(self.stores)
        self.bytes += size
        return [(s, share * max(cpu_per_byte * self.slowdown, 1 / NETWORK)) for s in self.stores]

    def enumerate(self) -> None:
        c = self.c

        def work(size: float, first: bool):
            # The first of a worker's tasks prepares the levels below the last.
            cpu = size * c["shard_cpu_per_graph"] + (c["prepare_cpu"] if first else 0)
            yield cpu * self.slowdown
            yield self.move(size * c["bytes_per_record"], c["ingest_cpu_per_byte"])

        mean = self.graphs / self.shards
        sizes = [mean * max(0.1, random.gauss(1, SHARD_SPREAD)) for _ in range(self.shards)]
        self.phase("enumerate", sizes, work)

    def collect(self) -> None:
        c = self.c

        def part(size: float, _first: bool):
            yield self.move(size * c["bytes_per_record"], c["scan_cpu_per_byte"])
            yield (size * c["part_cpu_per_graph"]
                   + self.graphs * c["part_cpu_per_graph_fixed"]) * self.slowdown
            yield self.move(size * c["part_bytes_per_graph"], c["ingest_cpu_per_byte"])

        sizes = [self.graphs / self.parts] * self.parts
        sizes[0] += self.hot * self.graphs
        self.phase("collect", sizes, part)

        def join(size: float, _first: bool):
            yield self.move(size * c["part_bytes_per_graph"], c["scan_cpu_per_byte"])
            yield size * c["join_cpu_per_graph"] * self.slowdown
            yield self.move(size * c["classes_bytes_per_graph"], c["ingest_cpu_per_byte"])

        self.phase("join", [self.graphs], join)

    def reduce(self) -> None:
        c = self.c
        pairs = c["pairs_per_graph"] * self.graphs * c["reduce_seconds_per_pair"] * self.slowdown
        proofs = c["candidates"] * c["proof_cpu"] * self.slowdown / self.verifiers
        self.now += pairs + proofs
        self.phases.append(("reduce", pairs + proofs, "reduce, one thread"))

    def all(self) -> "Run":
        self.enumerate()
        self.collect()
        self.reduce()
        return self


def parts_of(shards: int, bucket_bits: int) -> int:
    """docs/formats/coordinator.md"""
    return min(max(1, shards // 16), 1 << bucket_bits, 1024)


def run(c: dict, workers: int, graphs: float, shards: int, **more) -> Run:
    stores = more.pop("stores", max(2, math.ceil(workers / 20)))
    verifiers = more.pop("verifiers", max(2, math.ceil(workers / 10)))
    bits = max(6, (stores - 1).bit_length())
    return Run(c, workers=workers, stores=stores, graphs=graphs, shards=shards,
               parts=parts_of(shards, bits), verifiers=verifiers, **more).all()


def table(c: dict, workers: list[int], graphs: float, shards: int) -> list[list[str]]:
    rows = []
    for n in workers:
        r = run(c, n, graphs, shards)
        phases = [f"{seconds:.1f} ({limit})" for _, seconds, limit in r.phases]
        busy = sum(seconds for name, seconds, _ in r.phases if name != "reduce")
        rows.append([f"{n:,}", f"{len(r.stores)}", *phases, f"{r.now:.1f}",
                     f"{r.calls / busy:.0f}", f"{r.bytes / 1e6:.0f}",
                     max(r.phases, key=lambda p: p[1])[2]])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--constants", default=os.path.join(ROOT, "build", "constants.json"))
    parser.add_argument("--workers", default="1,2,3,10,100,1000")
    parser.add_argument("--graphs", type=float, default=1.864e6)
    parser.add_argument("--shards", type=int, default=128)
    parser.add_argument("--check")
    o = parser.parse_args()
    with open(o.constants, encoding="utf-8") as file:
        constants = json.load(file)
    if o.check:
        with open(o.check, encoding="utf-8") as file:
            check(constants, json.load(file))
        return
    print(f"{o.graphs:,.0f} graphs, {o.shards} shards")
    head = ["workers", "stores", "enumerate s", "collect s", "join s", "reduce s", "all s",
            "calls/s", "MB moved", "most time goes to"]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    for row in table(constants, [int(n) for n in o.workers.split(",")], o.graphs, o.shards):
        print("| " + " | ".join(row) + " |")


def check(c: dict, runs: list[dict]) -> None:
    """Cores are shared on one machine, so the wall time of a CPU second there is measured, too."""
    print(f"{'workers':>8}{'phase':>12}{'real s':>9}{'model s':>9}")
    for real in runs:
        r = run(c, real["workers"], real["graphs"], real["shards"], stores=2, verifiers=2,
                slowdown=real["slowdown"])
        modelled = {"enumerating": 0.0, "matching": 0.0, "reducing": 0.0}
        for name, seconds, _ in r.phases:
            state = {"enumerate": "enumerating", "reduce": "reducing"}.get(name, "matching")
            modelled[state] += seconds
        for name, seconds in modelled.items():
            measured = real["seconds"].get(name, 0)
            print(f"{real['workers']:>8}{name:>12}{measured:>9.1f}{seconds:>9.1f}")


if __name__ == "__main__":
    main()
