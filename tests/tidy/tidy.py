#!/usr/bin/env python3
"""Refuses what no compiler does: includes across the walls, and a few habits.

usage: tidy.py [--root DIR] [file...]    checks these files of DIR, or all of them
       tidy.py --self-test               checks that fixtures/ is refused, line by line, and no more

The walls are those of ARCHITECTURE.md. Standard library only, since it also runs as a commit hook.
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = "tests/tidy/fixtures/"

# A library, and the only folders that may include its headers.
WALLS = [
    (r"z3(\+\+|_\w+)?\.h$", "Z3", ["verifier/smt/"]),
    (r"rocksdb/", "RocksDB", ["store/"]),
    (r"onnx/", "ONNX", ["optimizer/onnx/"]),
    (r"(oneapi/|dnnl)", "oneDNN", ["optimizer/device/"]),
    (r"(cuda|cudnn|cublas|nvrtc|nvml)", "CUDA", ["optimizer/device/"]),
    (r"(coin/)?(Cbc|Clp|Cgl|Coin|Osi)\w*\.h(pp)?$", "CBC", ["optimizer/extract/"]),
    (r"CLI/", "CLI11", ["client/cli/"]),
    (r"(prometheus/|civetweb)", "prometheus-cpp and civetweb", ["client/observe/"]),
]

# A folder, and the folders it may include from; the longest matching line counts. Services know
# each other only by the wire: none lists another. client/cli, tests and bench see everything.
SERVICE = ["core/", "proto/", "store/", "client/rpc/", "client/registry/"]
MAY_INCLUDE = {
    "core/base/": ["core/base/"],
    "core/ops/": ["core/base/", "core/ops/"],
    "core/graph/": ["core/base/", "core/ops/", "core/graph/"],
    "core/": ["core/"],
    "proto/": ["core/", "proto/"],
    "store/": ["core/", "store/"],
    # The role on top of the library; artifacts are checked by SHA-256.
    "store/serve": SERVICE,
    "store/service": SERVICE,
    "client/rpc/": ["core/", "proto/", "client/rpc/"],
    "client/etcd/": ["core/", "proto/", "client/rpc/", "client/etcd/"],
    "client/registry/": ["core/", "proto/", "client/rpc/", "client/registry/"],
    # What servers ask of callers; put together by client/cli, so services do not know of it.
    "client/security/": ["core/", "proto/", "client/registry/", "client/security/"],
    "client/observe/": ["core/", "client/observe/"],
    "worker/": SERVICE + ["worker/"],
    "verifier/": SERVICE + ["verifier/"],
    # The checker: the proof and the normal form, no solver and no service.
    "verifier/cert/": ["core/", "verifier/cert/", "verifier/nf/", "verifier/driver.h",
                       "verifier/hypotheses.h"],
    "verifier/nf/": ["core/", "verifier/nf/"],
    "verifier/axioms/": ["core/", "verifier/axioms/"],
    "verifier/driver": ["core/", "verifier/nf/", "verifier/cases.h", "verifier/driver.h",
                        "verifier/hypotheses.h", "verifier/verdict.h"],
    "verifier/cases": ["core/", "verifier/nf/", "verifier/cases.h"],
    "interop/": ["core/", "verifier/", "interop/"],
    "coordinator/": SERVICE + ["client/etcd/", "coordinator/"],
    "optimizer/": SERVICE + ["optimizer/"],
    # Extraction knows numbers only.
    "optimizer/extract/": ["core/base/", "optimizer/extract/"],
}
OURS = ["core/", "proto/", "store/", "client/", "worker/", "verifier/", "interop/", "coordinator/",
        "optimizer/", "tests/", "bench/"]

# core is pure: the standard library without input, output and threads, absl's and fmt's likewise.
IMPURE = re.compile(r"(fstream|iostream|filesystem|thread|mutex|shared_mutex|future|semaphore|"
                    r"latch|condition_variable|absl/synchronization/.*|fmt/(os|ostream)\.h)$")
# Its own locks, which the other rooms use.
LOCKS = "core/base/mutex.h"
LOCKS_TOLD = "tests/support/tsan_grpc.cc"  # It tells ThreadSanitizer of abseil's locks.
LOCK = re.compile(r"(mutex|shared_mutex|condition_variable)$")
PURE = re.compile(r"([a-z_]+|(absl|fmt)/.*|core/.*|immintrin\.h)$")

# Messages stop where they are converted.
MESSAGE = re.compile(r"(google/protobuf/.*|grpcpp/.*|grpc/.*|.*\.pb\.h)$")
MESSAGE_ROOMS = re.compile(
    r"(proto/|client/(rpc|etcd|security|observe)/|optimizer/onnx/|interop/taso_file\.cc$|tests/|"
    r".*/service\.cc$)")

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')
UNNUMBERED = re.compile(r"\b(TODO|FIXME)\b(?!\(#\d+\))")
# Absolute paths of somebody's machine.
MACHINE_PATH = re.compile(r"(?<![\w.$}*])/(?:home|root|work|Users|mnt)/\w")

CODE = (".cc", ".h", ".cu")
SOURCE = CODE + (".proto", ".cmake", ".py", ".sh", "CMakeLists.txt", "dev", ".ci/run", "pre-commit")
TEXT = SOURCE + (".md", ".textproto", ".rules", ".json", ".txt", ".yml", ".yaml")
COLUMNS = 100


def in_any(path, folders):
    return any(path.startswith(folder) for folder in folders)


def check_include(path, header, quoted, exists):
    """Yields (name of the rule, reason) for one #include."""
    for pattern, library, folders in WALLS:
        if re.match(pattern, header) and not in_any(path, folders):
            yield "wall", f"{library} may be included only under {' '.join(folders)}"
    if MESSAGE.match(header):
        if not MESSAGE_ROOMS.match(path):
            yield "message", "messages and gRPC stop at proto, client/rpc and a service.cc"
        return
    if header.startswith("absl/synchronization/") and path != LOCKS_TOLD:
        yield "lock", f"locks come from {LOCKS}: what sanitizers cannot see is no lock"
    if path.startswith("core/") and not (path == LOCKS and LOCK.match(header)):
        if IMPURE.match(header) or header == LOCKS:
            yield "pure", f"core does no input, output or threads: not <{header}>"
        elif not PURE.match(header):
            yield "pure", f"core includes only core, std, absl and fmt: not <{header}>"
    if not in_any(header, OURS):
        if quoted and exists(os.path.join(os.path.dirname(path), header)):
            yield "root", "our own headers are named from the repository root"
        return
    if not quoted:
        yield "quote", f'our own headers are included in quotes: "{header}"'
    folder = max((f for f in MAY_INCLUDE if path.startswith(f)), key=len, default=None)
    if folder and not in_any(header, MAY_INCLUDE[folder]):
        yield "direction", f"{folder} may include only from {' '.join(MAY_INCLUDE[folder])}"
    if not exists(header):
        yield "exists", f'there is no "{header}"'


def check_file(path, text, exists):
    """Yields (line from 1, name of the rule, reason) for one file."""
    for part in path.split("/")[:-1]:
        if part in ("common", "util", "utils", "misc"):
            yield 1, "folder", f"'{part}' says nothing about what belongs there"
    header = path.endswith(".h")
    if header and not re.search(r"^#pragma once$", text, re.M):
        yield 1, "once", "a header starts with #pragma once"
    for number, line in enumerate(text.split("\n"), 1):
        if "\t" in line:
            yield number, "tab", "a tab: indent with spaces"
        if MACHINE_PATH.search(line):
            yield number, "path", "an absolute path of one machine"
        if not path.endswith(SOURCE):
            continue
        if len(line) > COLUMNS and not re.search(r"https?://\S{60}", line):
            yield number, "columns", f"{len(line)} columns, the limit is {COLUMNS}"
        if UNNUMBERED.search(line) and path != "tests/tidy/tidy.py":
            yield number, "todo", "an open end needs the number of its issue: TODO(#123)"
        if not path.endswith(CODE):
            continue
        if header and re.match(r"\s*using\s+namespace\b", line):
            yield number, "using", "no `using namespace` in a header"
        include = INCLUDE.match(line)
        if include:
            for rule, reason in check_include(path, include[2], include[1] == '"', exists):
                yield number, rule, reason


def all_files(root):
    """What git knows or would add; without git, everything but hidden and build folders."""
    if os.path.exists(os.path.join(root, ".git")):
        listed = subprocess.run(["git", "-C", root, "-c", "safe.directory=*", "ls-files", "-co",
                                 "--exclude-standard"], capture_output=True, text=True)
        if listed.returncode == 0:
            return listed.stdout.splitlines()
    found = []
    for folder, folders, files in os.walk(root):
        top = folder == root
        folders[:] = [f for f in folders
                      if not f.startswith(".") and not (top and re.match(r"build|out$", f))]
        found += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return found


def check(root, paths):
    """Yields (path, line, rule, reason)."""
    def exists(header):
        return os.path.exists(os.path.join(root, header))

    for path in sorted(paths):
        full = os.path.join(root, path)
        if path.startswith(FIXTURES) or not path.endswith(TEXT) or not os.path.isfile(full):
            continue
        with open(full, encoding="utf-8", errors="replace") as file:
            for line, rule, reason in check_file(path, file.read(), exists):
                yield path, line, rule, reason


def self_test():
    """Each line of a fixture that must be refused ends in `tidy: <rule>`; no other line may be."""
    root = os.path.join(HERE, "fixtures")
    paths = [os.path.relpath(os.path.join(folder, f), root)
             for folder, _, files in os.walk(root) for f in files]
    expected = set()
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                for rule in re.findall(r"tidy: ([\w ]+)$", line.rstrip()):
                    expected.update((path, number, r) for r in rule.split())
    actual = {(path, line, rule) for path, line, rule, _ in check(root, paths)}
    for path, line, rule in sorted(expected - actual):
        print(f"{FIXTURES}{path}:{line}: accepted, but breaks the rule '{rule}'")
    for path, line, rule in sorted(actual - expected):
        print(f"{FIXTURES}{path}:{line}: refused by the rule '{rule}', but is right")
    tested = {rule for _, _, rule in expected}
    with open(os.path.abspath(__file__), encoding="utf-8") as file:
        untested = set(re.findall(r'yield (?:number, |1, )?"(\w+)"', file.read())) - tested
    for rule in sorted(untested):
        print(f"tests/tidy/tidy.py: the rule '{rule}' has no fixture")
    print(f"tidy self-test: {len(expected)} bad lines, {len(tested)} rules")
    return not (expected ^ actual or untested)


def main(arguments):
    if arguments == ["--self-test"]:
        return 0 if self_test() else 1
    root = os.path.dirname(os.path.dirname(HERE))
    if arguments[:1] == ["--root"]:
        root, arguments = os.path.abspath(arguments[1]), arguments[2:]
    paths = arguments or all_files(root)
    refused = 0
    for path, line, _, reason in check(root, paths):
        print(f"{path}:{line}: {reason}")
        refused += 1
    print(f"tidy: {len(paths)} files, {refused} to put right")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
