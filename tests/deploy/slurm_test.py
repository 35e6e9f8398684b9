"""deploy/slurm: a run makes the pack that one process makes, keeps its secrets and leaves nothing.

usage: slurm_test.py stand-in|cluster    with TENON_BIN_DIR set

stand-in runs the scripts with the `srun` beside this file. cluster starts munged, slurmctld and
three slurmd on loopback and submits with sbatch; it ends with 77 where Slurm is not installed.
"""
import glob
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SLURM = os.path.join(HERE, "..", "..", "deploy", "slurm")
BATCH = os.path.join(SLURM, "tenon.sbatch")
NODES = os.path.join(SLURM, "nodes.sbatch")
TENON = os.path.join(os.environ["TENON_BIN_DIR"], "tenon")
SMALL = ["--universe", "matrix", "--max-operators", "2", "--name", "matrix@1.0.0"]
# So many shards that it takes minutes, in little memory.
LONG = ["--universe", "matrix", "--max-operators", "4", "--mode", "canonical", "--shards", "60000",
        "--name", "matrix@1.0.0"]


class Folder(unittest.TestCase):
    """With a folder of its own, a home in it, and no variables of a cluster that we may be on."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tenon-slurm-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.mkdir(self.path("home"))
        self.environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("SLURM", "TENON_", "XDG_"))
        }
        self.environment.update(HOME=self.path("home"), TMPDIR=self.folder, TENON=TENON)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_it(self, command, **more):
        return subprocess.run(command, cwd=self.folder, env={**self.environment, **more}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                              check=False)

    def address(self, pack):
        shown = self.run_it([TENON, "pack", "show", pack, "--json", "-"])
        self.assertEqual(shown.returncode, 0, shown.stderr)
        return json.loads(shown.stdout)["address"]

    def expect_pack_of_one_process(self, run):
        alone = self.run_it([TENON, "generate", *SMALL, "--out", self.path("alone.pack")])
        self.assertEqual(alone.returncode, 0, alone.stderr)
        pack = os.path.join(run, "matrix.pack")
        self.assertEqual(self.address(pack), self.address(self.path("alone.pack")))
        self.assertEqual(self.run_it([TENON, "pack", "verify", pack]).returncode, 0)

    def logs(self, run):
        text = ""
        for name in sorted(glob.glob(os.path.join(run, "log", "*.err"))):
            with open(name, encoding="utf-8") as file:
                text += f"---- {name}\n" + file.read()[-1500:]
        return text

    def processes(self):
        """Those that work in our folder."""
        ours = []
        for name in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(name, "rb") as file:
                    if self.folder.encode() in file.read():
                        ours.append(name)
            except OSError:
                pass  # It has ended meanwhile.
        return ours


class StandIn(Folder):
    def setUp(self):
        super().setUp()
        self.environment.update(
            PATH=HERE + ":" + self.environment["PATH"], SLURM_JOB_NUM_NODES="2",
            SLURM_JOB_ID=str(os.getpid()), SLURM_CPUS_PER_TASK="1", SLURM_SUBMIT_DIR=self.folder)
        self.run_folder = self.path(f"tenon-{os.getpid()}")

    def test_makes_the_pack_of_one_process_and_leaves_nothing(self):
        ran = self.run_it(["bash", BATCH, *SMALL])
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr + self.logs(self.run_folder))
        self.expect_pack_of_one_process(self.run_folder)
        self.assertEqual(self.processes(), [])
        self.assertEqual(glob.glob(self.path("tenon-data-*")), [])
        # Each of the two nodes had its part.
        for role in ("store", "worker", "verifier"):
            for node in range(2):
                with open(os.path.join(self.run_folder, "log", f"{role}-{node}.err"),
                          encoding="utf-8") as file:
                    self.assertIn('"event":"stopped"', file.read())
        # Secrets are for the user alone.
        for name in ("cluster.key", "node.token", "user.token", "."):
            mode = os.stat(os.path.join(self.run_folder, name)).st_mode
            self.assertEqual(stat.S_IMODE(mode) & 0o077, 0, name)
        # Who comes too late finds out.
        late = self.run_it(["bash", NODES, "worker", self.run_folder])
        self.assertEqual(late.returncode, 0, late.stderr)
        self.assertIn("has ended", late.stdout)

    def test_what_the_job_says_is_the_exit_code(self):
        ran = self.run_it(["bash", BATCH, "--universe", "no-such-universe"])
        self.assertEqual(ran.returncode, 3, ran.stdout + ran.stderr)
        self.assertIn("no-such-universe", ran.stderr)
        self.assertEqual(self.processes(), [])

    def test_others_join_and_a_signal_ends_all_of_it(self):
        with open(self.path("out"), "wb") as out:
            batch = subprocess.Popen(["bash", BATCH, *LONG], cwd=self.folder, stdout=out,
                                     stderr=out, env=self.environment)
        self.addCleanup(batch.kill)
        self.await_text(self.path("out"), "\nj1\n")
        with open(self.path("node"), "wb") as out:
            node = subprocess.Popen(
                ["bash", NODES, "worker", self.run_folder], cwd=self.folder, stdout=out, stderr=out,
                env={**self.environment, "SLURM_ARRAY_JOB_ID": "99", "SLURM_ARRAY_TASK_ID": "7"})
        self.addCleanup(node.kill)
        self.await_text(self.path("node"), '"event":"task leased"')
        node.send_signal(signal.SIGTERM)
        self.assertEqual(node.wait(60), 0)  # Gives its tasks back.
        batch.send_signal(signal.SIGTERM)
        self.assertNotEqual(batch.wait(60), 0)
        self.assertEqual(self.processes(), [])
        self.assertEqual(glob.glob(self.path("tenon-data-*")), [])
        self.assertFalse(os.path.exists(os.path.join(self.run_folder, "matrix.pack")))

    def await_text(self, path, text):
        end = time.monotonic() + 300
        said = ""
        while time.monotonic() < end:
            with open(path, encoding="utf-8") as file:
                said = file.read()
            if text in said:
                return
            time.sleep(0.05)
        self.fail(f"{path} does not say {text!r}:\n{said}\n" + self.logs(self.run_folder))

    def test_wrong_use_is_explained(self):
        for command, hint in (
                (["bash", NODES, "painter", self.folder], "say worker or verifier"),
                (["bash", NODES, "worker", self.path("nowhere")], "there is no folder"),
                (["env", "-u", "SLURM_JOB_ID", "bash", BATCH], "sbatch"),
                (["env", "TENON_STORES=3", "bash", BATCH], "does not fit 2 nodes"),
                (["env", "TENON=/no/tenon", "bash", BATCH], "set TENON")):
            ran = self.run_it(command)
            self.assertEqual(ran.returncode, 2, command)
            self.assertIn(hint, ran.stderr)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


CONF = """
ClusterName=tenon
SlurmctldHost={host}(127.0.0.1)
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
SlurmctldPort={port}
StateSaveLocation={d}/ctld
SlurmdSpoolDir={d}/%n
SlurmctldPidFile={d}/slurmctld.pid
SlurmdPidFile={d}/slurmd.%n.pid
SlurmctldLogFile={d}/slurmctld.log
SlurmdLogFile={d}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
KillWait=2
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={p1} CPUs=2 RealMemory=1000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={p2} CPUs=2 RealMemory=1000
NodeName=n3 NodeHostname={host} NodeAddr=127.0.0.1 Port={p3} CPUs=2 RealMemory=1000
PartitionName=debug Nodes=n[1-3] Default=YES MaxTime=INFINITE State=UP
"""


class Cluster(Folder):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("ctld"))
        for node in ("n1", "n2", "n3"):
            os.mkdir(self.path(node))
        with open(self.path("slurm.conf"), "w", encoding="utf-8") as file:
            file.write(CONF.format(host=socket.gethostname().split(".")[0], d=self.folder,
                                   port=free_port(), p1=free_port(), p2=free_port(),
                                   p3=free_port()))
        conf = self.path("slurm.conf")
        self.environment.update(SLURM_CONF=conf)
        if self.run_it(["munge", "-n"]).returncode != 0:
            self.run_it(["install", "-d", "-o", "munge", "-g", "munge", "-m", "755", "/run/munge"])
            self.start("runuser", "-u", "munge", "--", "/usr/sbin/munged", "--foreground")
            self.until(lambda: self.run_it(["munge", "-n"]).returncode == 0, "munged answers")
        self.start("slurmctld", "-D", "-f", conf)
        for node in ("n1", "n2", "n3"):
            self.start("slurmd", "-D", "-f", conf, "-N", node)
        self.until(lambda: self.run_it(["sinfo", "-h", "-N", "-o", "%t"]).stdout.split() ==
                   ["idle"] * 3, "three nodes are idle")

    def start(self, *command):
        with open(self.path("daemons.txt"), "ab") as out:
            daemon = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=out,
                                      stderr=out, stdin=subprocess.DEVNULL)

        def end():
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

        self.addCleanup(end)

    def until(self, holds, what):
        end = time.monotonic() + 300
        while not holds():
            if time.monotonic() > end:
                with open(self.path("daemons.txt"), encoding="utf-8") as file:
                    self.fail(f"not within five minutes: {what}\n{file.read()[-3000:]}")
            time.sleep(0.1)

    def submit(self, *command):
        # Little memory: that of three nodes is one machine's.
        out = self.run_it(["sbatch", "--parsable", "--mem-per-cpu=300", *command])
        self.assertEqual(out.returncode, 0, out.stderr)
        return out.stdout.strip().split(";")[0]

    def show(self, job):
        return self.run_it(["scontrol", "show", "job", job]).stdout

    def test_makes_the_pack_of_one_process(self):
        job = self.submit("--nodes=3", "--cpus-per-task=1", "--output=batch.txt", BATCH, *SMALL)
        self.until(lambda: re.search(r"JobState=(?!RUNNING|PENDING|COMPLETING)", self.show(job)),
                   "the job has ended")
        run = self.path(f"tenon-{job}")
        with open(self.path("batch.txt"), encoding="utf-8") as file:
            said = file.read()
        self.assertIn("JobState=COMPLETED", self.show(job), said + self.logs(run))
        self.expect_pack_of_one_process(run)

    def test_an_array_joins_and_leaves_and_a_cancelled_run_ends(self):
        job = self.submit("--nodes=1", "--cpus-per-task=1", "--output=batch.txt", BATCH,
                          *LONG)
        run = self.path(f"tenon-{job}")
        self.until(lambda: os.path.exists(os.path.join(run, "log", "worker-0.err")), "a worker")
        array = self.submit("--array=1-2", "--cpus-per-task=1", "--output=node-%a.txt", NODES,
                            "worker", run)

        def leased(k):
            path = self.path(f"node-{k}.txt")
            if not os.path.exists(path):
                return False
            with open(path, encoding="utf-8") as file:
                return '"event":"task leased"' in file.read()

        self.until(lambda: leased(1) and leased(2), "both nodes of the array work")
        self.run_it(["scancel", "--signal=TERM", "--batch", array])
        self.until(lambda: self.show(array).count("JobState=COMPLETED") == 2, "the array has left")
        self.run_it(["scancel", "--signal=TERM", "--batch", job])
        self.until(lambda: "JobState=FAILED" in self.show(job), "the run has ended")
        self.assertEqual(glob.glob(self.path("tenon-data-*")), [])


def main():
    suites = {"stand-in": StandIn, "cluster": Cluster}
    if len(sys.argv) != 2 or sys.argv[1] not in suites:
        sys.exit(__doc__)
    if sys.argv[1] == "cluster":
        programs = ("slurmctld", "slurmd", "sbatch", "munged", "munge")
        path = os.environ["PATH"] = os.environ["PATH"] + ":/usr/sbin:/sbin"
        missing = [p for p in programs if shutil.which(p, path=path) is None]
        if missing or os.geteuid() != 0:
            why = "missing: " + " ".join(missing) if missing else "not root"
            print(f"** deploy/slurm was NOT tested with Slurm itself ({why}); install what "
                  "deploy/packages/slurm.txt lists and run it as root")
            sys.exit(77)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(suites[sys.argv[1]])
    sys.exit(0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1)


if __name__ == "__main__":
    main()
