"""The guides for operators and users say what is there: commands, flags, files, alerts.

usage: docs_test.py    with TENON_BIN_DIR set
"""
import os
import re
import subprocess
import unittest

import yaml

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TENON = os.path.join(os.environ["TENON_BIN_DIR"], "tenon")
GUIDES = ["docs/operators-guide.md", "docs/submitting-jobs.md", "docs/serving.md",
          "docs/optimizing.md", "deploy/kubernetes/README.md"]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def flags_of(words):
    """The flags in the help of a command, as subcommands taken from the front of `words`."""
    command = []
    while True:
        shown = subprocess.run([TENON, *command, "--help"], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False).stdout
        _, _, below = shown.partition("Subcommands:\n")
        if not below:
            return command, set(re.findall(r"(--[a-z][a-z-]*)", shown.partition("Examples:")[0]))
        if not words or words[0] not in re.findall(r"^  ([a-z]+) ", below, re.M):
            return command, None
        command.append(words.pop(0))


class Guides(unittest.TestCase):
    def commands(self, text):
        """Lines that start with `tenon`, in blocks and between backticks."""
        for block in re.findall(r"```\n(.*?)```", text, re.S):
            for line in block.replace("\\\n", " ").splitlines():
                line = line.split("#")[0]
                at = re.search(r"(?:^|&& )\s*(tenon [a-z].*)", line)
                if at:
                    yield at.group(1)
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        yield from re.findall(r"`(tenon [a-z][^`|]*)`", prose)

    def test_commands_and_flags_exist(self):
        seen = 0
        for guide in GUIDES:
            for line in self.commands(read(guide)):
                command, flags = flags_of(re.findall(r"[^\s>]+", line)[1:])
                given = set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", line))
                if flags is None:  # A group: `tenon serve`, and nothing is said of it.
                    self.assertEqual(given, set(), f"{guide}: {line}")
                    self.assertEqual(line.split()[1:], command, f"{guide}: {line}")
                    continue
                self.assertLessEqual(given, flags, f"{guide}: {line}")
                seen += 1
        self.assertGreater(seen, 30)

    def test_a_wrong_flag_is_found(self):
        _, flags = flags_of(["job", "submit"])
        self.assertIn("--universe", flags)
        self.assertNotIn("--univers", flags)
        self.assertEqual(flags_of(["job", "sing"]), (["job"], None))

    def test_every_flag_of_submission_is_explained_or_of_the_connection(self):
        _, flags = flags_of(["job", "submit"])
        text = read("docs/submitting-jobs.md")
        plain = {"--help", "--mode", "--tls-certificate", "--tls-key"}
        self.assertEqual({f for f in flags if f not in text} - plain, set())

    def test_files_exist(self):
        for guide in GUIDES:
            for path in re.findall(r"(?<![\w/.])deploy/[\w/.-]*\w", read(guide)):
                if "ROLE" not in path:
                    self.assertTrue(os.path.exists(os.path.join(ROOT, path)), f"{guide}: {path}")
            for link in re.findall(r"\]\(([^)#]+)", read(guide)):
                there = os.path.join(ROOT, os.path.dirname(guide), link)
                self.assertTrue(os.path.exists(there), f"{guide}: {link}")

    def test_every_alert_is_explained(self):
        groups = yaml.safe_load(read("deploy/prometheus/alerts.yml"))["groups"]
        alerts = {r["alert"] for g in groups for r in g["rules"]}
        explained = set(re.findall(r"^\| `(\w+)` \(", read("docs/operators-guide.md"), re.M))
        self.assertEqual(alerts, explained)


if __name__ == "__main__":
    unittest.main(verbosity=2)
