"""The coordinator's web page in a real browser: what it shows, on wide and narrow screens, and
that it asks nobody else for anything.

usage: page_test.py [FOLDER]    with TENON_BIN_DIR set; screenshots go to FOLDER
"""
import os
import re
import signal
import sys
import time
import unittest

from browser import Browser
from cluster import Cluster, ROOT

PICTURES = sys.argv.pop(1) if len(sys.argv) > 1 else ""
HOSTILE = ("</pre><script>alert(1)</script><img src='http://tenon.invalid/x' onerror='alert(2)'>"
           "&lt;\\\"")


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cluster = Cluster()
        cls.addClassCleanup(cluster.close)
        cluster.start("--lease-ttl-ms", "3000")
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.root = "http://" + cluster.metrics["coordinator"]
        cls.job = cluster.tenon(
            "job", "submit", "--universe", "matrix", "--max-operators", "2", "--name",
            "matrix@1.0.0", "--wait", "--server", cluster.server).split()[0]
        # One that says bad things and waits, since its worker is gone.
        cluster.kill("worker", signal.SIGKILL)
        with open(os.path.join(ROOT, "universes", "matrix.textproto"), encoding="utf-8") as file:
            text = re.sub(r'(?m)^description: .*$', f'description: "{HOSTILE}"', file.read())
        cls.hostile = cluster.tenon(
            "job", "submit", "--universe", cluster.write("hostile.textproto", text), "--name",
            "hostile@1.0.0", "--server", cluster.server).strip()

    def open(self, path, width=1200, height=900):
        self.browser.requests, self.browser.errors = [], []
        self.browser.screen(width, height, mobile=width < 500)
        self.browser.open(self.root + path)
        if PICTURES:
            name = f"{re.sub('[^a-z0-9]+', '-', path).strip('-') or 'overview'}-{width}.png"
            with open(os.path.join(PICTURES, name), "wb") as file:
                file.write(self.browser.picture())
        return self.browser.ask("document.body.innerText")

    def expect_quiet(self):
        """Nothing failed, and nothing was asked of anybody but the coordinator."""
        self.assertEqual(self.browser.errors, [])
        foreign = [u for u in self.browser.requests
                   if not u.startswith((self.root + "/", "data:"))]
        self.assertEqual(foreign, [])
        self.assertTrue(self.browser.requests)

    def test_overview_shows_jobs_nodes_and_packs(self):
        text = self.open("/")
        end = time.monotonic() + 100
        while "silent" not in text and time.monotonic() < end:  # The worker is gone.
            text = self.open("/")
        self.expect_quiet()
        for part in (self.job, "done", "enumerating", "hostile@1.0.0", "0 of 16 shards",
                     "verifier", "127.0.0.1:", "silent", "ago", "matrix@1.0.0", "1,158"):
            self.assertIn(part, text)
        links = self.browser.ask("[...document.links].map(a => a.pathname).sort()")
        for link in ("/jobs/" + self.job, "/packs/matrix@1.0.0"):
            self.assertIn(link, links)
        # Every link leads somewhere.
        for link in set(links):
            self.open(link)
            self.expect_quiet()

    def test_a_finished_job_shows_verdicts_and_sizes(self):
        text = self.open("/jobs/" + self.job)
        self.expect_quiet()
        for part in ("publishing", "Verdicts", "proved", "refuted", "Graphs by size", "1,116",
                     "4 of 4 done", "matrix@1.0.0", "Universe"):
            self.assertIn(part, text)
        # Bars are as long as their numbers: 1116 graphs of two operators, 42 of one.
        widths = self.browser.ask(
            "[...[...document.querySelectorAll('.bars')].pop().querySelectorAll('.bar i')]"
            ".map(i => i.getBoundingClientRect().width)")
        self.assertEqual(len(widths), 2)
        self.assertAlmostEqual(widths[0] / widths[1], 42 / 1116, delta=0.005)
        # It has ended, so it is not loaded again.
        refresh = "document.querySelectorAll('meta[http-equiv=refresh]').length"
        self.assertEqual(self.browser.ask(refresh), 0)

    def test_rules_are_pictures(self):
        text = self.open("/packs/matrix@1.0.0")
        self.expect_quiet()
        forms = self.browser.ask("document.querySelectorAll('.rule').length")
        counted = re.search(r"(\d+) rules in (\d+) forms, all proved", text)
        self.assertEqual(int(counted[2]), forms)
        self.assertGreater(int(counted[1]), 5)
        self.assertLess(int(counted[1]), forms)
        drawn = self.browser.ask(
            "[...document.querySelectorAll('.rule svg')].filter(s => s.clientWidth > 50 &&"
            " s.querySelectorAll('rect').length > 3).length")
        self.assertEqual(drawn, forms)
        self.assertIn("MatMul", text)

    def test_foreign_text_stays_text(self):
        self.open("/jobs/" + self.hostile)
        self.expect_quiet()
        shown = self.browser.ask("document.querySelector('details pre').textContent")
        self.assertIn("<script>alert(1)</script><img src='http://tenon.invalid/x'", shown)
        foreign = "document.querySelectorAll('script, img').length"
        self.assertEqual(self.browser.ask(foreign), 0)

    def test_narrow_screens_need_no_sideways_scrolling(self):
        for path in ("/", "/jobs/" + self.job, "/jobs/" + self.hostile, "/packs/matrix@1.0.0"):
            self.open(path, 360, 740)
            self.expect_quiet()
            width = self.browser.ask("document.documentElement.scrollWidth")
            self.assertLessEqual(width, 360, path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
