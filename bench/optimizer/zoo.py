#!/usr/bin/env python3
"""What `tenon optimize` makes of the networks of tests/models/zoo.py, by both searches: costs, node
counts, seconds, and how far the outputs are from the original's.

usage: zoo.py [--size small|full] [--device NAME]... [--search NAME]... [--only a,b] [--limit S]
              [--packs DIR] [--models DIR] [--json FILE]

Packs are generated into DIR (build/zoo/packs) unless they are there. Prints a table in Markdown for
each device and size. Exit code 1 if a command fails, a cost rises, an error exceeds 1e-4, or
equality saturation is left behind by backtracking under the same limit of time.
"""
import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TENON = os.path.join(os.environ.get("TENON_BIN_DIR", os.path.join(ROOT, "build", "bin")), "tenon")
UNIVERSES = ("matrix", "conv")
ERROR_MAX = 1e-4
ROUNDING = 1e-6


def generated(folder):
    os.makedirs(folder, exist_ok=True)
    packs = [os.path.join(folder, universe + ".pack") for universe in UNIVERSES]
    for universe, pack in zip(UNIVERSES, packs):
        if not os.path.exists(pack):
            subprocess.run([TENON, "generate", "--universe", universe, "--out", pack], check=True,
                           stdout=subprocess.DEVNULL)
    return packs


def networks(folder, size, only):
    script = os.path.join(ROOT, "tests", "models", "zoo.py")
    command = ["/usr/bin/python3", script, "--out", folder, "--size", size]
    command += ["--only", only] if only else []
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [line.split()[0] for line in printed.splitlines()]


def optimize(model, device, search, packs, limit, out):
    report = out + ".json"
    command = [TENON, "optimize", model, "-o", out, "--device", device, "--search", search,
               "--time-limit", str(limit), "--report", report]
    for pack in packs:
        command += ["--pack", pack]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        return {"failed": done.stderr.strip().splitlines()[-1]}
    with open(report, encoding="utf-8") as file:
        full = json.load(file)
    os.remove(out)
    kept = ("cost_before_us", "cost_after_us", "nodes_before", "nodes_after", "seconds",
            "max_relative_error", "extraction")
    return {name: full[name] for name in kept} | {
        "search_seconds": full["exploration"]["seconds"], "end": full["exploration"]["end"]}


def wrongs(runs):
    """What must not be, of the searches of one network."""
    for search, run in runs.items():
        if "failed" in run:
            yield f"{search}: {run['failed']}"
            continue
        if run["cost_after_us"] > run["cost_before_us"] * (1 + ROUNDING):
            yield f"{search}: the cost rises"
        if run["max_relative_error"] is None or run["max_relative_error"] > ERROR_MAX:
            yield f"{search}: the error is {run['max_relative_error']}"
    sound = [run for run in runs.values() if "failed" not in run]
    if len(sound) == 2 and {"backtrack", "eqsat"} == set(runs):
        behind = runs["eqsat"]["cost_after_us"] / runs["backtrack"]["cost_after_us"]
        if behind > 1 + ROUNDING:
            yield f"eqsat is left behind by {100 * (behind - 1):.2f} %"


def cells(run):
    if "failed" in run:
        return ["failed", "", "", ""]
    extraction = run["extraction"]
    gap = f"{100 * extraction['gap']:.2g} %" if extraction else ""
    return [f"{run['cost_after_us']:.2f}", str(run["nodes_after"]), gap,
            f"{run['search_seconds']:.1f} ({run['end']})"]


def table(device, size, searches, rows):
    print(f"\n### {device}, {size}\n")
    head = ["network", "nodes", "us"]
    for search in searches:
        head += [f"{search}: us", "nodes"] + (["gap"] if search == "eqsat" else []) + ["s"]
    head += ["error"]
    print("| " + " | ".join(head) + " |")
    print("| --- |" + " ---: |" * (len(head) - 1))
    for network, runs in rows:
        sound = [run for run in runs.values() if "failed" not in run]
        if not sound:
            continue
        line = [network, str(sound[0]["nodes_before"]), f"{sound[0]['cost_before_us']:.2f}"]
        for search in searches:
            us, nodes, gap, seconds = cells(runs[search])
            line += [us, nodes] + ([gap] if search == "eqsat" else []) + [seconds]
        errors = [run["max_relative_error"] for run in sound]
        line += ["none" if None in errors else f"{max(errors):.1e}"]
        print("| " + " | ".join(line) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--size", action="append", choices=["small", "full"])
    parser.add_argument("--device", action="append")
    parser.add_argument("--search", action="append", choices=["backtrack", "eqsat"])
    parser.add_argument("--only", help="names of networks, with commas between them")
    parser.add_argument("--limit", type=float, default=60, help="seconds for each search")
    parser.add_argument("--packs", default=os.path.join(ROOT, "build", "zoo", "packs"))
    parser.add_argument("--models", default=os.path.join(ROOT, "build", "zoo"))
    parser.add_argument("--json")
    o = parser.parse_args()
    devices = o.device or ["roofline:h100", "roofline:weak"]
    searches = o.search or ["backtrack", "eqsat"]
    packs = generated(o.packs)
    everything, wrong = [], []
    for size in o.size or ["small", "full"]:
        folder = os.path.join(o.models, size)
        names = networks(folder, size, o.only)
        for device in devices:
            rows = []
            for name in names:
                runs = {}
                for search in searches:
                    out = os.path.join(folder, "optimized_" + name)
                    runs[search] = optimize(os.path.join(folder, name), device, search, packs,
                                            o.limit, out)
                network = name.removesuffix(".onnx")
                rows.append((network, runs))
                everything.append({"network": network, "size": size, "device": device,
                                   "runs": runs})
                wrong += [f"{network}, {size}, {device}: {what}" for what in wrongs(runs)]
                print(f"{network}, {size}, {device}: "
                      + ", ".join(f"{s} {r.get('cost_after_us', r.get('failed'))}"
                                  for s, r in runs.items()), file=sys.stderr, flush=True)
            table(device, size, searches, rows)
    if o.json:
        with open(o.json, "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=1)
    print()
    for line in wrong:
        print(f"WRONG: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
