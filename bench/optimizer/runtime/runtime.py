#!/usr/bin/python3
"""Are optimized models faster where they run? Original against optimized in ONNX Runtime.

usage: runtime.py [--size small|full] [--only a,b] [--device cpu] [--search backtrack|eqsat]
                  [--levels all,disabled] [--pairs N] [--processes N] [--time-limit S]
                  [--packs DIR] [--work DIR] [--reuse] [--json FILE]

Needs TENON_BIN_DIR, and NODE_PATH with onnxruntime-node. Makes the networks of tests/models/zoo.py,
optimizes each, and runs both models in turns in ONNX Runtime on one thread: `pairs` pairs, in
`processes` processes, since where a process happens to have its memory counts too. Prints a
Markdown table: for each network the ratio optimized / original (the median over its pairs) with its
95 % bootstrap interval, and the geometric mean of all. Resampled are processes, and pairs of these.
Exit code 1 if at level all an interval lies wholly above 1, or the mean is not below 1.
"""
import argparse
import json
import os
import subprocess
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
TENON = os.path.join(os.environ.get("TENON_BIN_DIR", os.path.join(ROOT, "build/bin")), "tenon")
RESAMPLES = 4000
UNIVERSES = ("matrix", "conv")


def run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def packs_in(folder: str) -> list[str]:
    """The packs of a folder, made if there are none."""
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, f"{universe}.pack") for universe in UNIVERSES]
    for universe, path in zip(UNIVERSES, paths):
        if not os.path.exists(path):
            run([TENON, "generate", "--universe", universe, "--out", path])
    return paths


def models_in(folder: str, size: str, only: str | None) -> list[str]:
    zoo = [sys.executable, os.path.join(ROOT, "tests/models/zoo.py"), "--out", folder,
           "--size", size]
    out = run(zoo + (["--only", only] if only else []))
    return [line.split()[0].removesuffix(".onnx") for line in out.splitlines()]


def optimize(model: str, result: str, packs: list[str], o: argparse.Namespace) -> dict:
    report = result.removesuffix(".onnx") + ".json"
    command = [TENON, "optimize", model, "-o", result, "--device", o.device, "--search", o.search,
               "--time-limit", str(o.time_limit), "--report", report]
    for pack in packs:
        command += ["--pack", pack]
    run(command)
    with open(report, encoding="utf-8") as file:
        return json.load(file)


def measure(model: str, result: str, level: str, o: argparse.Namespace) -> list[numpy.ndarray]:
    """Of each process, the pairs as an array [pairs, 2]."""
    script = os.path.join(HERE, "runtime.js")
    each = -(-o.pairs // o.processes)
    return [numpy.array(json.loads(run(["node", script, model, result, level, str(each)]))["pairs"])
            for _ in range(o.processes)]


def resampled(processes: list[numpy.ndarray], random: numpy.random.Generator) -> numpy.ndarray:
    """RESAMPLES medians of ratios."""
    ratios = numpy.array([p[:, 1] / p[:, 0] for p in processes])
    count, pairs = ratios.shape
    which = random.integers(count, size=(RESAMPLES, count, 1))
    pair = random.integers(pairs, size=(RESAMPLES, count, pairs))
    return numpy.median(ratios[which, pair].reshape(RESAMPLES, -1), axis=1)


def row(name: str, values: numpy.ndarray, ratio: float, more: str) -> str:
    low, high = numpy.percentile(values, [2.5, 97.5])
    return f"| {name} | {more} | {ratio:.3f} | {low:.3f} - {high:.3f} |"


def compare(names: list[str], level: str, folder: str, o: argparse.Namespace) -> tuple[dict, bool]:
    """Prints the table of a level. Whether it is as it should be."""
    print(f"\nLevel {level}:\n\n| network | original, us | optimized, us | ratio | 95 % |")
    print("| --- | ---: | ---: | ---: | --- |")
    random = numpy.random.default_rng(1)
    logs, log, slower, all_pairs = [], [], [], {}
    for name in names:
        processes = measure(os.path.join(folder, name + ".onnx"),
                            os.path.join(folder, name + ".optimized.onnx"), level, o)
        all_pairs[name] = [p.tolist() for p in processes]
        pairs = numpy.concatenate(processes)
        ratio = float(numpy.median(pairs[:, 1] / pairs[:, 0]))
        values = resampled(processes, random)
        original, optimized = numpy.median(pairs, axis=0)
        print(row(name, values, ratio, f"{original:.0f} | {optimized:.0f}"), flush=True)
        logs.append(numpy.log(values))
        log.append(numpy.log(ratio))
        if numpy.percentile(values, 2.5) > 1:
            slower.append(name)
    mean = float(numpy.exp(numpy.mean(log)))
    means = numpy.exp(numpy.mean(logs, axis=0))
    print(row("geometric mean", means, mean, "|"), flush=True)
    if slower:
        print(f"\nSlower, wholly: {', '.join(slower)}")
    return all_pairs, not slower and float(numpy.percentile(means, 97.5)) < 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--size", choices=["small", "full"], default="full")
    parser.add_argument("--only")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--search", default="backtrack")
    parser.add_argument("--levels", default="all,disabled")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--time-limit", type=float, default=30)
    parser.add_argument("--packs", default=os.path.join(ROOT, "out/packs"))
    parser.add_argument("--work", default=os.path.join(ROOT, "out/runtime"))
    parser.add_argument("--reuse", action="store_true", help="models that were optimized before")
    parser.add_argument("--json")
    o = parser.parse_args()
    os.makedirs(o.work, exist_ok=True)
    names = models_in(o.work, o.size, o.only)
    print("| network | device's cost before, us | after, us | nodes | after |")
    print("| --- | ---: | ---: | ---: | ---: |")
    packs = packs_in(o.packs)
    for name in names:
        result = os.path.join(o.work, name + ".optimized.onnx")
        if o.reuse and os.path.exists(result):
            continue
        report = optimize(os.path.join(o.work, name + ".onnx"), result, packs, o)
        print(f"| {name} | {report['cost_before_us']:.0f} | {report['cost_after_us']:.0f} | "
              f"{report['nodes_before']} | {report['nodes_after']} |", flush=True)
    pairs, good = {}, True
    for level in o.levels.split(","):
        pairs[level], as_it_should_be = compare(names, level, o.work, o)
        good = good and (as_it_should_be or level != "all")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as file:
            json.dump(pairs, file)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
