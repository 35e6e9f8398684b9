#!/usr/bin/env python3
"""Measures the constants of scaling.py on this machine, mostly as CPU seconds of the process that
does the work, so that other load on the machine matters little.

usage: constants.py [--out FILE]    after ./dev build tenon cluster_load cluster_bench
"""
import argparse
import json
import os
import subprocess
import time

import cluster

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOAD = os.path.join(ROOT, "build", "bench-tools", "cluster_load")
ENUMERATION = os.path.join(ROOT, "build", "bench-bin", "cluster_bench")
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_now(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def load(pid: int, *arguments: str) -> dict:
    """What cluster_load says, and the CPU seconds of the process under load as `server`."""
    before = cpu_now(pid)
    done = subprocess.run([LOAD, *arguments], text=True, stdout=subprocess.PIPE, timeout=600,
                          check=True)
    time.sleep(0.2)
    return {**json.loads(done.stdout), "server": cpu_now(pid) - before}


def coordinator_constants() -> dict:
    shards = 3000
    running = cluster.Cluster(stores=0, workers=0, verifiers=0,
                              coordinator=("--stores", "127.0.0.1:1"))
    try:
        pid = running.processes[0][1].pid
        out = {}
        for nodes in (1, 16):
            job = running.submit("matrix", 3, f"load@1.0.{nodes}", "--shards", str(shards))
            done = load(pid, "calls", running.server, str(nodes))
            running.cancel(job)
            assert done["tasks"] == shards
            out[f"task_wall_{nodes}"] = done["wall"] / shards
            out[f"task_cpu_{nodes}"] = done["server"] / shards
        beats = load(pid, "beats", running.server, "5000")
        out["beat_cpu"] = beats["server"] / beats["beats"]
        return out
    finally:
        running.stop()


def store_constants() -> dict:
    running = cluster.Cluster(stores=1, workers=0, verifiers=0)
    try:
        pid = running.processes[1][1].pid
        store = running.stores[0]
        put = load(pid, "put", store, "7", "2000")
        scan = load(pid, "scan", store, "7")
        return {"ingest_cpu_per_byte": put["server"] / put["bytes"],
                "bytes_per_record": put["bytes"] / put["records"],
                "scan_cpu_per_byte": scan["server"] / put["bytes"],
                "merge_cpu_per_record": scan["cpu"] / scan["records"]}
    finally:
        running.stop()


def worker_constants() -> dict:
    """Of a universe that is enumerated in 8 shards, collected in 8 parts and joined, with the
    stores in the same process: what is theirs is small, and counted with the worker's."""
    done = subprocess.run([ENUMERATION, "--benchmark_filter=BM_Cluster/4",
                           "--benchmark_format=json"], stdout=subprocess.PIPE, text=True,
                          check=True)
    found = json.loads(done.stdout)["benchmarks"][0]
    graphs = found["graphs"]
    # A part costs something by itself: it walks the enumeration for its graphs.
    fixed = max(0.0, (found["parts_cpu_seconds"] - found["one_part_cpu_seconds"]) / 7)
    return {"prepare_cpu": found["prepare_cpu_seconds"],
            "shard_cpu_per_graph":
                (found["shards_cpu_seconds"] - found["prepare_cpu_seconds"]) / graphs,
            "part_cpu_per_graph_fixed": fixed / graphs,
            "part_cpu_per_graph": (found["one_part_cpu_seconds"] - fixed) / graphs,
            "join_cpu_per_graph": found["join_cpu_seconds"] / graphs,
            "part_bytes_per_graph": found["part_bytes"] / graphs,
            "classes_bytes_per_graph": found["artifact_bytes"] / graphs}


def reduce_constants() -> dict:
    report = "/tmp/tenon-reduce.json"
    cluster.run(["generate", "--universe", "matrix", "--max-operators", "4", "--out",
                 "/tmp/tenon-reduce.pack", "--json", report], "/tmp")
    with open(report, encoding="utf-8") as file:
        r = json.load(file)
    return {"reduce_seconds_per_pair":
                (r["reduce_seconds"] - r["proof_seconds"]) / r["equivalent_pairs"],
            "proof_cpu": r["proof_seconds"] / max(1, r["candidates"]),
            "pairs_per_graph": r["equivalent_pairs"] / r["graphs"],
            "candidates": r["candidates"], "rounds": r["rounds"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "constants.json"))
    o = parser.parse_args()
    constants = {}
    for part in (coordinator_constants, store_constants, worker_constants, reduce_constants):
        constants.update(part())
    with open(o.out, "w", encoding="utf-8") as file:
        json.dump(constants, file, indent=1)
    print(json.dumps(constants, indent=1))


if __name__ == "__main__":
    main()
