"""One node of each role on loopback, as processes, for tests."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TENON = os.path.join(os.environ["TENON_BIN_DIR"], "tenon")


class Cluster:
    """Everything lies in a folder of its own, which close() removes."""

    def __init__(self, log_format="text"):
        self.folder = tempfile.mkdtemp(prefix="tenon-cluster-")
        self.environment = {"HOME": self.folder, "PATH": os.environ["PATH"]}
        self.log_format = log_format
        self.processes = {}
        self.server = self.store = ""
        self.metrics = {}  # HOST:PORT by role.

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def said(self, role, stream="out"):
        with open(self.path(f"{role}.{stream}"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def port(self, role, says):
        end = time.monotonic() + 100
        while time.monotonic() < end:
            found = re.search(says + r" on port (\d+)\n", self.said(role))
            if found:
                return "127.0.0.1:" + found.group(1)
            if self.processes[role].poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"{role} did not start: {self.said(role, 'err')[-2000:]}")

    def serve(self, role, *flags):
        with open(self.path(f"{role}.out"), "wb") as out, \
                open(self.path(f"{role}.err"), "ab") as err:
            self.processes[role] = subprocess.Popen(
                [TENON, "serve", role, "--metrics-listen", "127.0.0.1:0", "--log-format",
                 self.log_format, *flags], stdout=out, stderr=err, env=self.environment)
        self.metrics[role] = self.port(role, "metrics listen")

    def start(self, *of_coordinator):
        self.serve("coordinator", "--data", self.path("c"), "--listen", "127.0.0.1:0",
                   *of_coordinator)
        self.server = self.port("coordinator", "coordinator listens")
        to = ("--coordinator", self.server)
        self.serve("store", "--data", self.path("s"), "--listen", "127.0.0.1:0", *to)
        self.store = self.port("store", "store listens")
        self.serve("worker", "--slots", "1", *to)
        self.serve("verifier", "--slots", "1", *to)

    def start_optimizer(self, *flags):
        self.serve("optimizer", "--data", self.path("o"), "--listen", "127.0.0.1:0", *flags)

    def kill(self, role, with_signal):
        self.processes[role].send_signal(with_signal)
        self.processes[role].wait(100)

    def stop(self):
        for role in reversed(list(self.processes)):  # The coordinator last.
            if self.processes[role].poll() is None:
                self.kill(role, signal.SIGTERM)
        self.processes = {}

    def close(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *arguments):
        return subprocess.run([TENON, *arguments], text=True, stdout=subprocess.PIPE, timeout=300,
                              stderr=subprocess.PIPE, env=self.environment, check=False)

    def tenon(self, *arguments):
        """What a command that must work says on stdout."""
        ran = self.run(*arguments)
        if ran.returncode != 0:
            raise AssertionError(f"{arguments}: {ran.returncode}: {ran.stdout}{ran.stderr}")
        return ran.stdout
