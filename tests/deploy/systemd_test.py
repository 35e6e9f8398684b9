"""deploy/systemd: the units are right, closed, and what they start is a cluster that works.

usage: systemd_test.py    with TENON_BIN_DIR set. Ends with 77 where systemd-analyze is missing.
"""
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

UNITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy", "systemd")
TENON = os.path.join(os.environ["TENON_BIN_DIR"], "tenon")
ZOO = os.path.join(os.path.dirname(UNITS), "..", "tests", "models", "zoo.py")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def units():
    return sorted(glob.glob(os.path.join(UNITS, "*.service")))


class Units(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tenon-systemd-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def analyze(self, *arguments):
        return subprocess.run(["systemd-analyze", *arguments], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, timeout=60)

    def verify(self, unit, text):
        name = os.path.basename(unit).replace("@.", "@1.")
        result = self.analyze("verify", self.write(name, text.replace("/usr/bin/tenon", TENON)))
        # Unknown keys are only warned of. What it says of other units of this machine is not ours.
        return [line for line in result.stdout.splitlines() if "tenon" in line] + \
               ["failed"] * (result.returncode != 0)

    def test_systemd_finds_nothing_wrong(self):
        self.assertEqual(len(units()), 5)
        for unit in units():
            self.assertEqual(self.verify(unit, read(unit)), [], unit)

    def test_systemd_would_find_it(self):
        text = read(units()[0])
        self.assertNotEqual(self.verify(units()[0], text.replace("UMask=", "Umasque=")), [])
        self.assertNotEqual(self.verify(units()[0], text.replace("/usr/bin/tenon", "/no/t")), [])

    def test_they_are_closed(self):
        for unit in units():
            text = read(unit)
            name = self.write(os.path.basename(unit), text)
            result = self.analyze("security", "--offline=true", "--threshold=20", name)
            self.assertEqual(result.returncode, 0, result.stdout)  # At most 2.0 of 10.

    def test_what_they_start_works(self):
        """Their command lines with their example flags, on this machine."""
        # One certificate is both the server's and its own authority.
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=tenon", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                        self.path("host.key"), "-out", self.path("host.pem")],
                       check=True, stderr=subprocess.DEVNULL)
        shutil.copy(self.path("host.pem"), self.path("ca.pem"))
        for name, role in (("node", "node"), ("user", "submit")):
            token = subprocess.run([TENON, "token", "create", "--token-file", self.path("tokens"),
                                    "--name", name, "--role", role], check=True, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            self.write(name + ".token", token)
        coordinator = self.start("tenon-coordinator", "coordinator", {})
        self.start("tenon-store", "store", {"coordinator.example:7400": coordinator})
        for role in ("worker", "verifier"):
            self.start(f"tenon-{role}@", f"{role}-1", {"coordinator.example:7400": coordinator})
        job = subprocess.run([TENON, "job", "submit", "--universe", "matrix", "--max-operators",
                              "1", "--wait", "--server", coordinator, "--token",
                              self.path("user.token"), "--tls-ca", self.path("ca.pem")],
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             timeout=100, check=False)
        logs = "".join(read(log) for log in glob.glob(self.path("*.log")))
        self.assertEqual(job.returncode, 0, job.stdout + logs)
        # With the pack that was just made.
        optimizer = self.start("tenon-optimizer", "optimizer",
                               {"coordinator.example:7400": coordinator, "nn@stable": "matrix"})
        subprocess.run(["/usr/bin/python3", ZOO, "--out", self.folder, "--only", "qkv"], check=True,
                       stdout=subprocess.DEVNULL)
        ran = subprocess.run([TENON, "optimize", self.path("qkv.onnx"), "-o",
                              self.path("out.onnx"), "--pack", "matrix", "--server", optimizer,
                              "--token", self.path("user.token"), "--tls-ca", self.path("ca.pem"),
                              "--deadline", "60"], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=100, check=False)
        self.assertEqual(ran.returncode, 0, ran.stdout)

    def start(self, unit, conf, replace):
        """Starts a unit's command; returns HOST:PORT of what listens, if it says so."""
        text = read(os.path.join(UNITS, conf + ".conf"))
        replace = {**replace, "/etc/tenon": self.folder, "/var/lib/tenon": self.path("data"),
                   "0.0.0.0:7400": "127.0.0.1:0", "0.0.0.0:7401": "127.0.0.1:0",
                   "0.0.0.0:7402": "127.0.0.1:0"}
        text = re.sub(r"metrics-listen = .*", "metrics-listen = 127.0.0.1:0", text)
        text = re.sub(r"advertise = .*\n", "", text)
        for old, new in replace.items():
            text = text.replace(old, new)
        self.write(conf + ".conf", text)
        service = read(os.path.join(UNITS, unit + ".service")).replace("\\\n", "")
        command = re.search(r"^ExecStart=(.*)$", service, re.M).group(1)
        for old, new in (("/usr/bin/tenon", TENON), ("%d", self.folder), ("%i", "1"),
                         ("/etc/tenon", self.folder)):
            command = command.replace(old, new)
        flags = ["--tls-server-name", "localhost"]  # 127.0.0.1 is not in the certificate.
        home = {"HOME": self.folder, "TENON_TOKEN": "", "TENON_SERVER": ""}
        with open(self.path(conf + ".out"), "wb") as out, open(self.path(conf + ".log"),
                                                              "wb") as log:
            process = subprocess.Popen(shlex.split(command) + flags, stdout=out, stderr=log,
                                       env={**os.environ, **home})
        self.addCleanup(self.end, process, unit)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            said = re.search(r"^(coordinator|store|optimizer) listens on port (\d+)$",
                             read(self.path(conf + ".out")), re.M)
            if said:
                return "localhost:" + said.group(2)
            if conf.endswith("-1") and '"event":"working"' in read(self.path(conf + ".log")):
                return ""
            self.assertIsNone(process.poll(), read(self.path(conf + ".log")))
            time.sleep(0.05)
        return self.fail(unit + " did not start: " + read(self.path(conf + ".log")))

    def end(self, process, unit):
        process.send_signal(signal.SIGTERM)
        try:
            self.assertEqual(process.wait(30), 0, unit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


if __name__ == "__main__":
    if shutil.which("systemd-analyze") is None:
        print("** deploy/systemd was NOT checked: systemd-analyze is missing (package systemd)")
        sys.exit(77)
    unittest.main(verbosity=2)
