"""docs/operators-guide.md, "Back up and restore": a job that was paused, copied and restored makes
the pack that it would have made, and packs that were published are there.

usage: backup_test.py    with TENON_BIN_DIR set
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

TENON = os.path.join(os.environ["TENON_BIN_DIR"], "tenon")


class Backup(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tenon-backup-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {"HOME": self.folder, "PATH": os.environ["PATH"]}
        self.running = []
        self.addCleanup(self.stop)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def serve(self, role, *flags):
        """Starts a role; returns the HOST:PORT it says, if it listens."""
        out = self.path(f"{role}.out")
        with open(out, "wb") as o, open(self.path(f"{role}.err"), "ab") as e:
            self.running.append(subprocess.Popen([TENON, "serve", role, *flags], stdout=o, stderr=e,
                                                 env=self.environment))
        if role in ("worker", "verifier"):
            return ""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            with open(out, encoding="utf-8") as file:
                said = re.search(r"listens on port (\d+)\n", file.read())
            if said:
                return "127.0.0.1:" + said.group(1)
            time.sleep(0.02)
        return self.fail(f"{role} did not start")

    def start(self):
        self.server = self.serve("coordinator", "--data", self.path("c"), "--listen", "127.0.0.1:0")
        to = ("--coordinator", self.server)
        self.store = self.serve("store", "--data", self.path("s"), "--listen", "127.0.0.1:0", *to)
        self.serve("worker", "--slots", "1", *to)
        self.serve("verifier", "--slots", "1", *to)

    def stop(self):
        for process in reversed(self.running):  # The coordinator last.
            process.terminate()
            process.wait(30)
        self.running = []

    def tenon(self, *arguments):
        ran = subprocess.run([TENON, *arguments], text=True, stdout=subprocess.PIPE, timeout=100,
                             stderr=subprocess.PIPE, env=self.environment, check=False)
        self.assertEqual(ran.returncode, 0, f"{arguments}: {ran.stdout}{ran.stderr}")
        return ran.stdout

    def show(self, job):
        return json.loads(self.tenon("job", "show", job, "--json", "-", "--server", self.server))

    def test_restored_jobs_go_on_and_packs_are_there(self):
        self.start()
        self.tenon("job", "submit", "--universe", "matrix", "--max-operators", "2", "--name",
                   "matrix@1.0.0", "--wait", "--server", self.server)
        job = self.tenon("job", "submit", "--universe", "matrix", "--max-operators", "3", "--name",
                         "matrix@1.1.0", "--shards", "200", "--server", self.server).strip()
        end = time.monotonic() + 30
        while self.show(job)["shards_done"] == 0:
            self.assertLess(time.monotonic(), end)
        self.tenon("job", "pause", job, "--server", self.server)
        self.assertTrue(self.show(job)["paused"])
        self.tenon("store", "checkpoint", "monday", "--server", self.store)
        self.stop()
        shutil.copytree(self.path("c", "coordinator"), self.path("saved", "coordinator"))
        shutil.copytree(self.path("s", "monday"), self.path("saved", "store"))
        shutil.copy(self.path("s", "store.id"), self.path("saved", "store.id"))
        shutil.rmtree(self.path("c"))
        shutil.rmtree(self.path("s"))

        shutil.copytree(self.path("saved", "coordinator"), self.path("c", "coordinator"))
        shutil.copytree(self.path("saved", "store"), self.path("s", "store"))
        shutil.copy(self.path("saved", "store.id"), self.path("s", "store.id"))
        self.start()
        self.tenon("store", "verify", "--server", self.store)
        self.assertIn("matrix@1.0.0", self.tenon("pack", "list", "--server", self.server))
        self.tenon("job", "resume", job, "--server", self.server)
        self.tenon("job", "watch", job, "--server", self.server)
        alone = self.path("alone.pack")
        self.tenon("generate", "--universe", "matrix", "--max-operators", "3", "--out", alone)
        shown = json.loads(self.tenon("pack", "show", alone, "--json", "-"))
        self.assertEqual(self.show(job)["pack_address"], shown["address"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
