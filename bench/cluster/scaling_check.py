#!/usr/bin/env python3
"""Runs a job on clusters of 1, 2 and 3 workers and writes what scaling.py --check compares.

usage: scaling_check.py --out FILE [--universe NAME] [--operators K] [--workers 1,2,3]

Cores are shared on one machine, with whatever else runs there: how many wall seconds a CPU second
takes is measured beside each run by a process that does nothing but count.
"""
import argparse
import json
import multiprocessing
import time

import cluster


def count(stop, out) -> None:
    begin, cpu = time.monotonic(), time.process_time()
    while not stop.is_set():
        for _ in range(100_000):
            pass
    out.put((time.monotonic() - begin) / (time.process_time() - cpu))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--universe", default="matrix")
    parser.add_argument("--operators", type=int, default=4)
    parser.add_argument("--workers", default="1,2,3")
    o = parser.parse_args()
    runs = []
    for workers in (int(n) for n in o.workers.split(",")):
        running = cluster.Cluster(workers=workers)
        stop, out = multiprocessing.Event(), multiprocessing.Queue()
        counter = multiprocessing.Process(target=count, args=(stop, out))
        counter.start()
        try:
            job = running.submit(o.universe, o.operators, "bench@1.0.0")
            shown, seconds = running.follow(job, pause=0.1)
        finally:
            stop.set()
            slowdown = out.get()
            counter.join()
            running.stop()
        runs.append({"workers": workers, "graphs": shown["graphs"],
                     "shards": shown["shards_total"], "seconds": seconds, "slowdown": slowdown})
        print(json.dumps(runs[-1]), flush=True)
    with open(o.out, "w", encoding="utf-8") as file:
        json.dump(runs, file, indent=1)


if __name__ == "__main__":
    main()
