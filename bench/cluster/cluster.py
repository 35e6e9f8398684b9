"""A cluster of real processes on loopback, whose CPU time is counted.

Each process is waited for when it has been told to stop, so what is counted is all of its user and
system time, and that of the processes it has waited for (the provers of a verifier).
"""
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time

BIN = os.environ.get("TENON_BIN_DIR", "build/bin")
TENON = os.path.join(BIN, "tenon")


def cpu_of(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def run(arguments: list[str], home: str) -> tuple[float, float]:
    """CPU and wall seconds of `tenon ARGUMENTS`, which must succeed."""
    begin = time.monotonic()
    process = subprocess.Popen([TENON, *arguments], stdout=subprocess.DEVNULL,
                               env={"HOME": home, "PATH": os.environ["PATH"]})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"tenon {' '.join(arguments)}: exit code {process.returncode}")
    return cpu_of(usage), time.monotonic() - begin


class Cluster:
    """One coordinator, and as many of the others as said; stopped and removed with `stop`."""

    def __init__(self, stores: int = 2, workers: int = 3, verifiers: int = 2,
                 coordinator: tuple[str, ...] = ()):
        self.folder = tempfile.mkdtemp(prefix="tenon-bench-")
        self.processes: list[tuple[str, subprocess.Popen]] = []
        self.server = self._serve("coordinator", 0, "--data", self._path("c"), "--listen",
                                  "127.0.0.1:0", "--min-stores", str(max(stores, 1)), *coordinator)
        to = ("--coordinator", self.server)
        self.stores = [self._serve("store", k, "--data", self._path(f"s{k}"), "--listen",
                                   "127.0.0.1:0", *to) for k in range(stores)]
        for k in range(workers):
            self._serve("worker", k, "--slots", "1", *to)
        for k in range(verifiers):
            self._serve("verifier", k, "--slots", "1", *to)

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _serve(self, role: str, number: int, *flags: str) -> str:
        log = self._path(f"{role}{number}")
        with open(log + ".out", "wb") as out, open(log + ".err", "wb") as err:
            process = subprocess.Popen([TENON, "serve", role, *flags], stdout=out, stderr=err,
                                       env={"HOME": log, "PATH": os.environ["PATH"]})
        self.processes.append((role, process))
        if role not in ("coordinator", "store"):
            return ""
        end = time.monotonic() + 120
        while time.monotonic() < end and process.poll() is None:
            with open(log + ".out", encoding="utf-8") as file:
                said = re.search(r"listens on port (\d+)\n", file.read())
            if said:
                return "127.0.0.1:" + said.group(1)
            time.sleep(0.05)
        raise SystemExit(f"{role} did not start: see {log}.err")

    def submit(self, universe: str, operators: int, name: str, *flags: str) -> str:
        out = self._tenon("job", "submit", "--universe", universe, "--max-operators",
                          str(operators), "--name", name, "--server", self.server, *flags)
        return out.strip()

    def cancel(self, job: str) -> None:
        self._tenon("job", "cancel", job, "--server", self.server)

    def show(self, job: str) -> dict:
        return json.loads(self._tenon("job", "show", job, "--json", "-", "--server", self.server))

    def _tenon(self, *arguments: str) -> str:
        done = subprocess.run([TENON, *arguments], text=True, stdout=subprocess.PIPE,
                              env={"HOME": self._path("user"), "PATH": os.environ["PATH"]},
                              timeout=60, check=True)
        return done.stdout

    def follow(self, job: str, pause: float = 1.0) -> tuple[dict, dict[str, float]]:
        """The job when it has ended, and the wall seconds that it was in each state."""
        seconds: dict[str, float] = {}
        before = time.monotonic()
        while True:
            shown = self.show(job)
            now = time.monotonic()
            seconds[shown["state"]] = seconds.get(shown["state"], 0) + now - before
            before = now
            if shown["state"] == "done":
                return shown, seconds
            if shown["state"] in ("failed", "cancelled"):
                raise SystemExit(f"the job is {shown['state']}: {shown['error']}")
            time.sleep(pause)

    def stop(self) -> dict[str, float]:
        """CPU seconds by role."""
        cpu: dict[str, float] = {}
        for role, process in reversed(self.processes):  # The coordinator last.
            process.terminate()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            cpu[role] = cpu.get(role, 0) + cpu_of(usage)
        shutil.rmtree(self.folder, ignore_errors=True)
        return cpu
