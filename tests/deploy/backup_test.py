"""docs/operators-guide.md, "Back up and restore": a job that was paused, copied and restored makes
the pack that it would have made, and packs that were published are there.

usage: backup_test.py    with TENON_BIN_DIR set
"""
import json
import shutil
import time
import unittest

from cluster import Cluster


class Backup(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)

    def path(self, *names):
        return self.cluster.path(*names)

    def tenon(self, *arguments):
        return self.cluster.tenon(*arguments)

    def show(self, job):
        return json.loads(self.tenon("job", "show", job, "--json", "-", "--server",
                                     self.cluster.server))

    def test_restored_jobs_go_on_and_packs_are_there(self):
        self.cluster.start()
        self.tenon("job", "submit", "--universe", "matrix", "--max-operators", "2", "--name",
                   "matrix@1.0.0", "--wait", "--server", self.cluster.server)
        job = self.tenon("job", "submit", "--universe", "matrix", "--max-operators", "3", "--name",
                         "matrix@1.1.0", "--shards", "200", "--server", self.cluster.server).strip()
        end = time.monotonic() + 30
        while self.show(job)["shards_done"] == 0:
            self.assertLess(time.monotonic(), end)
        self.tenon("job", "pause", job, "--server", self.cluster.server)
        self.assertTrue(self.show(job)["paused"])
        self.tenon("store", "checkpoint", "monday", "--server", self.cluster.store)
        self.cluster.stop()
        shutil.copytree(self.path("c", "coordinator"), self.path("saved", "coordinator"))
        shutil.copytree(self.path("s", "monday"), self.path("saved", "store"))
        shutil.copy(self.path("s", "store.id"), self.path("saved", "store.id"))
        shutil.rmtree(self.path("c"))
        shutil.rmtree(self.path("s"))

        shutil.copytree(self.path("saved", "coordinator"), self.path("c", "coordinator"))
        shutil.copytree(self.path("saved", "store"), self.path("s", "store"))
        shutil.copy(self.path("saved", "store.id"), self.path("s", "store.id"))
        self.cluster.start()
        self.tenon("store", "verify", "--server", self.cluster.store)
        self.assertIn("matrix@1.0.0", self.tenon("pack", "list", "--server", self.cluster.server))
        self.tenon("job", "resume", job, "--server", self.cluster.server)
        self.tenon("job", "watch", job, "--server", self.cluster.server)
        alone = self.path("alone.pack")
        self.tenon("generate", "--universe", "matrix", "--max-operators", "3", "--out", alone)
        shown = json.loads(self.tenon("pack", "show", alone, "--json", "-"))
        self.assertEqual(self.show(job)["pack_address"], shown["address"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
