"""What people and scripts see of jobs: commands, documents, logs, refusals.

usage: jobs_test.py    with TENON_BIN_DIR set
"""
import json
import os
import pty
import re
import signal
import subprocess
import time
import unittest

from cluster import Cluster, ROOT, TENON

TITLE = "`tenon job submit | show | watch | list --json`"
JSON_PAGE = os.path.join(ROOT, "docs", "formats", "json.md")


def documented(title):
    """The names between backticks of a section of docs/formats/json.md."""
    with open(JSON_PAGE, encoding="utf-8") as file:
        section = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", file.read(),
                            re.M | re.S)
    return set(re.findall(r"`([a-z_0-9]+)`", section.group(1)))


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(log_format="json")
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start("--max-graphs", "1000000")
        cls.watched = cls.run_there("job", "submit", "--universe", "matrix", "--max-operators", "2",
                                    "--name", "matrix@1.0.0", "--wait")
        cls.job = cls.watched.stdout.split()[0] if cls.watched.stdout else ""

    @classmethod
    def run_there(cls, *arguments):
        return cls.cluster.run(*arguments, "--server", cls.cluster.server)

    def ask(self, *arguments):
        ran = self.run_there(*arguments, "--json", "-")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)

    def refused(self, code, *arguments):
        ran = self.run_there(*arguments)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        self.assertRegex(ran.stderr, r"^tenon: [^\n]+\n$")
        return ran.stderr

    # ---- what a job would take

    def test_a_dry_run_says_what_a_job_takes_and_makes_none(self):
        before = self.ask("job", "list", "--all")
        estimate = self.ask("job", "submit", "--universe", "matrix", "--max-operators", "3",
                            "--name", "dry@1.0.0", "--dry-run")
        # There are 41,436.
        self.assertAlmostEqual(estimate["graphs"], 41436, delta=10000)
        self.assertFalse(estimate["extrapolated"])
        for what in ("cpu_ms", "memory_bytes", "disk_bytes"):
            self.assertGreater(estimate[what], 0)
        self.assertLessEqual(set(estimate), documented(TITLE))
        said = self.run_there("job", "submit", "--universe", "matrix", "--name", "dry@1.0.0",
                              "--dry-run").stdout
        self.assertIn("memory of a slot", said)
        self.assertEqual(self.ask("job", "list", "--all"), before)
        # What would be refused is refused.
        self.assertIn("matrix@1.0.0", self.refused(3, "job", "submit", "--universe", "matrix",
                                                   "--name", "matrix@1.0.0", "--dry-run"))

    def test_what_is_above_a_limit_is_refused_with_the_numbers(self):
        submit = ("job", "submit", "--universe", "matrix", "--name", "large@1.0.0")
        said = self.refused(3, *submit, "--max-operators", "6")
        self.assertRegex(said, r"roughly \S+ graphs: .* of memory in a slot, and 4 GiB are "
                               r"allowed; .* records, and 1e\+06 are allowed")
        self.assertIn("fewer operators", said)
        self.assertRegex(self.refused(3, *submit, "--max-operators", "4"),
                         r"about 1\.\d+e\+06 graphs: 1\.\d+e\+06 records, and 1e\+06 are allowed")
        self.assertRegex(self.refused(3, *submit, "--memory-limit", "1MiB"),
                         "of memory in a slot, and 0.000977 GiB are allowed")
        self.assertRegex(self.refused(3, *submit, "--time-limit", "0.001"),
                         r"s of CPU time, and 0\.001 s are allowed")
        self.assertNotIn("large@1.0.0", json.dumps(self.ask("job", "list", "--all")))

    # ---- documents and views

    def test_the_document_of_a_job_is_complete_and_documented(self):
        fields = set(self.ask("job", "show", self.job))
        explained = documented(TITLE)
        of_estimates = {"disk_bytes", "memory_bytes", "extrapolated"}
        of_set_aside = {"shard", "last_error", "workers"}
        self.assertEqual(fields - explained, set())
        self.assertEqual(explained - fields - of_estimates - of_set_aside, set())
        shown = self.ask("job", "show", self.job)
        self.assertEqual(shown["mode"], "exhaustive")
        self.assertIn('name: "matrix"', shown["universe"])

    def test_a_pipe_gets_a_line_for_each_state(self):
        self.assertEqual(self.watched.returncode, 0, self.watched.stderr)
        states = re.findall(rf"^{self.job}: (\w+)$", self.watched.stderr, re.M)
        order = ["submitted", "enumerating", "matching", "reducing", "publishing", "done"]
        self.assertEqual(states, [s for s in order if s in states])
        self.assertEqual(states[-1], "done")
        self.assertNotIn("\x1b", self.watched.stderr + self.watched.stdout)
        ran = self.run_there("job", "watch", self.job, "--log-format", "json")
        events = [json.loads(line) for line in ran.stderr.splitlines()]
        self.assertEqual([(e["event"], e["job"], e["state"]) for e in events],
                         [("job", self.job, "done")])

    def test_a_terminal_gets_a_bar(self):
        # Nobody works on it: the bar stands still until it is cancelled.
        self.cluster.processes["worker"].send_signal(signal.SIGSTOP)
        self.addCleanup(self.cluster.processes["worker"].send_signal, signal.SIGCONT)
        job = self.run_there("job", "submit", "--universe", "matrix", "--max-operators", "2",
                             "--name", "bar@1.0.0").stdout.strip()
        ours, theirs = pty.openpty()
        watch = subprocess.Popen([TENON, "job", "watch", job, "--server", self.cluster.server],
                                 stdout=theirs, stderr=theirs,
                                 env={**self.cluster.environment, "TERM": "xterm"})
        os.close(theirs)
        said = b""
        end = time.monotonic() + 100
        while b"of 4" not in said and time.monotonic() < end:
            said += os.read(ours, 4096)
        self.assertRegex(said.decode(), r"\r\x1b\[Kenumerating \[[#.]{24}\] \d of 4")
        self.run_there("job", "cancel", job)
        self.assertEqual(watch.wait(100), 1)
        os.close(ours)

    def test_a_done_job_has_its_shards_after_a_restart(self):
        before = self.ask("job", "show", self.job)
        self.assertEqual(before["shards_done"], 4)
        cluster = self.cluster
        cluster.kill("coordinator", signal.SIGKILL)
        cluster.serve("coordinator", "--data", cluster.path("c"), "--listen", cluster.server,
                      "--max-graphs", "1000000")
        cluster.port("coordinator", "coordinator listens")
        after = self.ask("job", "show", self.job)
        for document in (before, after):
            del document["revision"]
        self.assertEqual(after, before)
        self.assertIn("4 of 4 shards", self.run_there("job", "list", "--all").stdout)

    # ---- logs

    def test_logs_name_job_and_shard(self):
        shards = set()
        for role in ("coordinator", "store", "worker", "verifier"):
            lines = [json.loads(line) for line in self.cluster.said(role, "err").splitlines()]
            self.assertTrue(lines, role)
            for line in lines:
                self.assertLessEqual({"time", "level", "event", "role"}, set(line))
                self.assertLessEqual(set(line), {"time", "level", "event", "role", "task", "job",
                                                 "shard", "round", "port", "slots", "proofs",
                                                 "detail"})
                if "/shard/" in line.get("task", ""):
                    self.assertEqual(line["task"], f"{line['job']}/shard/{line['shard']}")
                    if line["event"] == "task completed" and line["job"] == self.job:
                        shards.add(line["shard"])
        self.assertEqual(shards, {"0", "1", "2", "3"})
        coordinator = self.cluster.said("coordinator", "err")
        for event in ("job_submitted", "job_started", "reducing", "job_done"):
            self.assertIn(f'"event":"{event}","role":"coordinator","job":"{self.job}"', coordinator)

    # ---- other commands

    def test_asking_the_wrong_server_is_explained(self):
        said = self.refused(3, "store", "stats")
        self.assertIn("another role", said)
        ran = self.cluster.run("job", "list", "--server", self.cluster.store)
        self.assertEqual(ran.returncode, 3, ran.stderr)
        self.assertIn("another role", ran.stderr)

    def test_pull_says_where_the_pack_is(self):
        path = self.cluster.path("pulled.pack")
        said = self.run_there("pack", "pull", "matrix@1.0.0", "-o", path).stdout
        self.assertEqual(said.split(",")[0], f"matrix@1.0.0 is in {path}")
        self.assertTrue(os.path.exists(path))
        self.assertIn("is in the cache", self.run_there("pack", "pull", "matrix@1.0.0").stdout)

    def test_a_dash_is_no_file(self):
        pack = self.cluster.path("dash.pack")
        self.run_there("pack", "pull", "matrix@1.0.0", "-o", pack)
        for command in (["generate", "--universe", "matrix", "--max-operators", "1"],
                        ["pack", "certify", pack], ["pack", "keygen"], ["pack", "sign", pack],
                        ["optimize", pack]):
            ran = subprocess.run([TENON, *command, "-o", "-"], text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, cwd=self.cluster.folder, check=False,
                                 env=self.cluster.environment)
            self.assertEqual(ran.returncode, 3, f"{command}: {ran.stdout}{ran.stderr}")
            self.assertIn("'-' stands for stdout with --json only", ran.stderr, command)
        self.assertIn("'-' stands for", self.refused(3, "pack", "pull", "matrix@1.0.0", "-o", "-"))
        self.assertFalse(os.path.exists(self.cluster.path("-")))
        self.assertFalse(os.path.exists(self.cluster.path("-.pub")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
