"""The ready jobs of deploy/ci: they parse, have the parts that the two systems ask for, and their
scripts do what they say, with this build's `tenon`.

usage: ci_test.py    with TENON_BIN_DIR set
"""
import json
import os
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

import yaml

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BIN = os.path.abspath(os.environ["TENON_BIN_DIR"])
MODEL = os.path.join(ROOT, "tests/models/known_bugs/conv_bn_epsilon/model.onnx")


def read(name):
    with open(os.path.join(ROOT, "deploy/ci", name), encoding="utf-8") as file:
        return yaml.load(file, Loader=yaml.BaseLoader)  # "on" is a word here, not true.


def github():
    job = read("github.yml")
    steps = {step.get("name"): step for step in job["jobs"]["optimize"]["steps"]}
    return steps["optimize"]["run"], job["env"]


def gitlab():
    job = read("gitlab.yml")["optimize-model"]
    return "\n".join(job["script"]), job["variables"]


class Jobs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_script(self, script, variables, **more):
        environment = {k: v for k, v in variables.items() if "{{" not in v}
        environment.update(PATH=f"{BIN}:/usr/bin:/bin", HOME=self.folder, TENON_PACKS="",
                           MODEL=MODEL, **more)
        return subprocess.run(["sh", "-e", "-c", script], cwd=self.folder, env=environment,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)

    def cases(self):
        suite = xml.etree.ElementTree.parse(self.path("junit.xml")).getroot().find("testsuite")
        return {case.get("name"): [child.tag for child in case] for case in suite}

    def test_both_have_the_parts_that_their_system_asks_for(self):
        job = read("github.yml")
        self.assertIn("pull_request", job["on"])
        steps = job["jobs"]["optimize"]["steps"]
        self.assertTrue(all(("uses" in s) != ("run" in s) for s in steps))
        always = [s for s in steps if s.get("if") == "always()"]
        self.assertTrue(any("GITHUB_STEP_SUMMARY" in s.get("run", "") for s in always))
        self.assertTrue(any("upload-artifact" in s.get("uses", "") for s in always))
        lab = read("gitlab.yml")["optimize-model"]
        self.assertEqual(lab["artifacts"]["reports"]["junit"], "junit.xml")
        self.assertEqual(lab["artifacts"]["when"], "always")

    def test_a_good_result_passes_and_leaves_all_reports(self):
        for script, variables in (github(), gitlab()):
            done = self.run_script(script, variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            for name in ("optimized.onnx", "report.json", "summary.md", "baseline.json"):
                self.assertTrue(os.path.getsize(self.path(name)), name)
            self.assertEqual(set(self.cases()),
                             {"optimize", "fail-if-slower", "min-speedup", "max-relative-error"})
            self.assertNotIn("failure", sum(self.cases().values(), []))

    def test_a_threshold_that_is_not_met_fails_the_job(self):
        for script, variables in (github(), gitlab()):
            done = self.run_script(script, variables, MIN_SPEEDUP="1000")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(self.cases()["min-speedup"], ["failure"])
            self.assertFalse(os.path.exists(self.path("baseline.json")))
            with open(self.path("summary.md"), encoding="utf-8") as file:
                self.assertIn("**failed**", file.read())

    def test_slower_than_the_baseline_fails_the_job(self):
        for script, variables in (github(), gitlab()):
            if os.path.exists(self.path("baseline.json")):
                os.remove(self.path("baseline.json"))
            self.assertEqual(self.run_script(script, variables).returncode, 0)
            with open(self.path("baseline.json"), encoding="utf-8") as file:
                baseline = json.load(file)
            baseline["cost_after_us"] *= 0.5
            with open(self.path("baseline.json"), "w", encoding="utf-8") as file:
                json.dump(baseline, file)
            done = self.run_script(script, variables)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(self.cases()["fail-if-slower"], ["failure"])

    def test_a_model_that_is_none_is_an_error_of_the_job(self):
        for script, variables in (github(), gitlab()):
            with open(self.path("bad.onnx"), "wb") as file:
                file.write(b"this is no model")
            script = script.replace('"$MODEL"', "bad.onnx")
            done = self.run_script(script, variables)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertEqual(self.cases(), {"optimize": ["error"]})


if __name__ == "__main__":
    unittest.main()
