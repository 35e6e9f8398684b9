"""deploy/prometheus: rules, dashboard and guides speak of metrics that a real cluster has, and a
real Prometheus sees a node die.

usage: prometheus_test.py    with TENON_BIN_DIR set
"""
import json
import os
import re
import signal
import socket
import subprocess
import time
import unittest
import urllib.request

import yaml

from cluster import Cluster, ROOT

RULES = os.path.join(ROOT, "deploy", "prometheus")
ROLES = ("coordinator", "store", "worker", "verifier", "optimizer")
# What Prometheus itself adds.
ADDED = {"up"}
# What a coordinator without etcd has nothing to say of.
WITH_ETCD = {"tenon_etcd_seconds"}


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def promtool(*arguments, **more):
    return subprocess.run(["promtool", *arguments], text=True, stdout=subprocess.PIPE, timeout=100,
                          stderr=subprocess.STDOUT, cwd=RULES, check=False, **more)


def families(text):
    """The names of metrics in an exposition."""
    return set(re.findall(r"^# TYPE (\S+) ", text, re.M))


def mentioned(expression):
    """The names of metrics in an expression, without the suffixes of histograms."""
    plain = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^]]*\]', " ", expression)
    names = re.findall(r"\b(?:(?:tenon|process)_[a-z_]+|up)\b", plain)
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in names}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Files(unittest.TestCase):
    def test_they_are_what_prometheus_takes(self):
        for check in (["check", "config", "prometheus.yml"], ["check", "rules", "alerts.yml"],
                      ["test", "rules", "alerts_test.yml"]):
            ran = promtool(*check)
            self.assertEqual(ran.returncode, 0, ran.stdout)

    def test_every_alert_is_tested_quiet_and_firing(self):
        groups = yaml.safe_load(read("deploy", "prometheus", "alerts.yml"))["groups"]
        quiet, firing = set(), set()
        for case in yaml.safe_load(read("deploy", "prometheus", "alerts_test.yml"))["tests"]:
            for check in case["alert_rule_test"]:
                (firing if check.get("exp_alerts") else quiet).add(check["alertname"])
        alerts = {r["alert"] for g in groups for r in g["rules"]}
        self.assertEqual(alerts, quiet)
        self.assertEqual(alerts, firing)


class RealCluster(unittest.TestCase):
    """One of each role, with a job behind it."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()
        cls.cluster.start_optimizer()
        cls.cluster.tenon("job", "submit", "--universe", "matrix", "--max-operators", "2", "--name",
                          "matrix@1.0.0", "--wait", "--server", cls.cluster.server)

    def scraped(self, role):
        with urllib.request.urlopen(f"http://{self.cluster.metrics[role]}/metrics",
                                    timeout=30) as answer:
            return answer.read().decode()

    def test_metrics_follow_the_conventions(self):
        for role in ROLES:
            text = self.scraped(role)
            ran = promtool("check", "metrics", input=text)
            self.assertEqual((ran.returncode, ran.stdout), (0, ""), f"{role}: {ran.stdout}\n{text}")
            # Each series once.
            series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if line[:1] != "#"]
            self.assertEqual(len(series), len(set(series)), role)

    def test_what_is_asked_for_is_there_and_what_is_there_is_explained(self):
        there = ADDED.union(*(families(self.scraped(role)) for role in ROLES))
        groups = yaml.safe_load(read("deploy", "prometheus", "alerts.yml"))["groups"]
        asked = {r["alert"]: r["expr"] for g in groups for r in g["rules"]}
        for panel in json.loads(read("deploy", "prometheus", "dashboard.json"))["panels"]:
            asked[panel["title"]] = " ".join(target["expr"] for target in panel["targets"])
        for who, expression in asked.items():
            names = mentioned(expression)
            self.assertTrue(names, who)
            self.assertLessEqual(names, there, who)
        explained = set(re.findall(r"`((?:tenon|process)_[a-z_]+)", read("docs", "serving.md")))
        self.assertEqual(there - ADDED, explained - WITH_ETCD)

    def test_figures_are_right(self):
        coordinator, verifier = self.scraped("coordinator"), self.scraped("verifier")
        for line in ('tenon_jobs{state="done"} 1', 'tenon_jobs_ended_total{state="done"} 1',
                     'tenon_jobs_ended_total{state="failed"} 0', "tenon_graphs_total 1158",
                     'tenon_nodes{role="worker"} 1', 'tenon_open_tasks{kind="shard"} 0',
                     "tenon_shards_total 4", "tenon_shards_set_aside_total 0"):
            self.assertIn("\n" + line + "\n", coordinator)
        proved = [re.search(pattern, text).group(1) for pattern, text in (
            (r'tenon_job_verdicts_total\{verdict="proved"\} (\d+)', coordinator),
            (r'tenon_verdicts_total\{repeatable="true",verdict="proved"\} (\d+)', verifier))]
        self.assertEqual(proved[0], proved[1])
        self.assertGreater(int(proved[0]), 0)
        self.assertIn('tenon_tasks_total{outcome="completed",role="worker"} 6',
                      self.scraped("worker"))
        store = self.scraped("store")
        self.assertIn("\ntenon_store_accepts_writes 1\n", store)
        self.assertRegex(store, r"\ntenon_store_runs_total [1-9]")
        for role in ROLES:
            text = self.scraped(role)
            self.assertRegex(text, r"\nprocess_resident_memory_bytes [1-9]")
            self.assertRegex(text, r"\nprocess_open_fds [1-9]")
            self.assertIn(f'tenon_build_info{{role="{role}"', text)


class DeadNode(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.cluster.start()
        self.cluster.start_optimizer()

    def test_a_dead_node_is_noticed(self):
        config = yaml.safe_load(read("deploy", "prometheus", "prometheus.yml"))
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        self.assertEqual([c["job_name"] for c in config["scrape_configs"]],
                         [f"tenon-{role}" for role in ROLES])
        for scrape, role in zip(config["scrape_configs"], ROLES):
            scrape["static_configs"][0]["targets"] = [self.cluster.metrics[role]]
        # The rules as they are, but for how long something must last.
        rules = re.sub(r"^( +for:) \w+$", r"\1 1s", read("deploy", "prometheus", "alerts.yml"),
                       flags=re.M)
        self.cluster.write("alerts.yml", rules)
        path = self.cluster.write("prometheus.yml", yaml.safe_dump(config))
        port = free_port()
        prometheus = subprocess.Popen(
            ["prometheus", f"--config.file={path}",
             f"--storage.tsdb.path={self.cluster.path('tsdb')}",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(prometheus.wait, 60)
        self.addCleanup(prometheus.kill)

        def ask(path):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}",
                                            timeout=10) as answer:
                    return json.load(answer)["data"]
            except OSError:
                return None

        def firing():
            answer = ask("alerts")
            return {(a["labels"]["alertname"], a["labels"].get("job"))
                    for a in (answer or {"alerts": []})["alerts"] if a["state"] == "firing"}

        def healthy():
            answer = ask("targets?state=active")
            return sum(t["health"] == "up" for t in answer["activeTargets"]) if answer else 0

        self.wait(lambda: healthy() == len(ROLES), "the targets are not all up")
        self.assertEqual(firing(), set())
        self.cluster.kill("worker", signal.SIGKILL)
        self.wait(lambda: ("TenonNodeDown", "tenon-worker") in firing(), "no alert for the worker")
        self.cluster.kill("coordinator", signal.SIGKILL)
        self.wait(lambda: ("TenonCoordinatorDown", "tenon-coordinator") in firing(),
                  "no alert for the coordinator")

    def wait(self, condition, message):
        end = time.monotonic() + 120
        while not condition():
            self.assertLess(time.monotonic(), end, message)
            time.sleep(0.2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
