#!/usr/bin/env python3
"""What a cluster costs beside one process, in CPU seconds of all processes together.

usage: overhead.py [--operators K] [--runs N] [--universe NAME] [--json FILE]

The same job, embedded (`tenon generate`) and on a cluster of real processes on loopback (1
coordinator, 2 stores, 3 workers, 2 verifiers), in turn. Starting and stopping is measured with a
cluster that does nothing, and subtracted. Both must come to the same content address.
"""
import argparse
import json
import os
import statistics
import tempfile

import cluster


def embedded(universe: str, operators: int) -> dict:
    with tempfile.TemporaryDirectory(prefix="tenon-bench-") as folder:
        report, pack = os.path.join(folder, "report"), os.path.join(folder, "pack")
        cpu, wall = cluster.run(["generate", "--universe", universe, "--max-operators",
                                 str(operators), "--out", pack, "--json", report], folder)
        shown = os.path.join(folder, "shown")
        cluster.run(["pack", "show", pack, "--json", shown], folder)
        with open(report, encoding="utf-8") as r, open(shown, encoding="utf-8") as s:
            return {"cpu": cpu, "wall": wall, "report": json.load(r),
                    "address": json.load(s)["address"]}


def idle() -> dict[str, float]:
    nothing = cluster.Cluster()
    return nothing.stop()


def clustered(universe: str, operators: int) -> dict:
    running = cluster.Cluster()
    try:
        job = running.submit(universe, operators, "bench@1.0.0")
        shown, seconds = running.follow(job)
    finally:
        cpu = running.stop()
    return {"cpu": cpu, "seconds": seconds, "address": shown["pack_address"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--universe", default="matrix")
    parser.add_argument("--operators", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json")
    o = parser.parse_args()
    roles = ("coordinator", "store", "worker", "verifier")
    print(f"{'run':>4}{'embedded':>10}{'cluster':>9}{'idle':>7}{'net':>8}{'ratio':>7}   "
          + "".join(f"{role:>12}" for role in roles) + "   (CPU s)")
    all_runs = []
    for k in range(o.runs):
        one = embedded(o.universe, o.operators)
        many, nothing = clustered(o.universe, o.operators), idle()
        if one["address"] != many["address"]:
            raise SystemExit("the packs differ")
        total, start = sum(many["cpu"].values()), sum(nothing.values())
        ratio = (total - start) / one["cpu"]
        all_runs.append({"embedded": one, "cluster": many, "idle": nothing, "ratio": ratio})
        print(f"{k + 1:>4}{one['cpu']:>10.2f}{total:>9.2f}{start:>7.2f}{total - start:>8.2f}"
              f"{ratio:>7.3f}   "
              + "".join(f"{many['cpu'][r] - nothing[r]:>12.2f}" for r in roles), flush=True)
    ratios = [r["ratio"] for r in all_runs]
    print(f"ratio: median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as file:
            json.dump(all_runs, file, indent=1)


if __name__ == "__main__":
    main()
