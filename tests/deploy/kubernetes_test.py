"""deploy/kubernetes and deploy/docker, as far as they can be judged without either.

Every field is one that the API has, every reference resolves, every flag and port is the program's,
and the command lines of the pods, with their probes, make a cluster on this machine. The packages
of the image are Debian's, and all that the program needs.

usage: kubernetes_test.py    with TENON_BIN_DIR set
"""
import glob
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import yaml

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FOLDER = os.path.join(ROOT, "deploy", "kubernetes")
PACKAGES = os.path.join(ROOT, "deploy", "packages")
TENON = os.path.join(os.environ["TENON_BIN_DIR"], "tenon")
ZOO = os.path.join(ROOT, "tests", "models", "zoo.py")

# The part of the API that the manifests use: a field's type is a Python type, a dict of fields, or
# a list of one of these. {"*": type}: a map.
TEXT = {"*": str}
META = {"name": str, "labels": TEXT, "annotations": TEXT}
SELECTOR = {"matchLabels": TEXT}
PROBE = {"exec": {"command": [str]}, "httpGet": {"path": str, "port": str}, "periodSeconds": int,
         "timeoutSeconds": int, "failureThreshold": int}
CONTAINER = {
    "name": str, "image": str, "command": [str], "args": [str],
    "env": [{"name": str, "valueFrom": {"fieldRef": {"fieldPath": str}}}],
    "ports": [{"name": str, "containerPort": int}],
    "startupProbe": PROBE, "readinessProbe": PROBE, "livenessProbe": PROBE,
    "resources": {"requests": TEXT, "limits": TEXT},
    "securityContext": {"allowPrivilegeEscalation": bool, "readOnlyRootFilesystem": bool,
                        "capabilities": {"drop": [str]}},
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}],
}
POD = {
    "terminationGracePeriodSeconds": int, "serviceAccountName": str,
    "automountServiceAccountToken": bool,
    "securityContext": {"runAsNonRoot": bool, "runAsUser": int, "runAsGroup": int, "fsGroup": int,
                        "seccompProfile": {"type": str}},
    "containers": [CONTAINER], "initContainers": [CONTAINER],
    "volumes": [{"name": str, "emptyDir": {"medium": str},
                 "secret": {"secretName": str, "items": [{"key": str, "path": str}]}}],
}
TEMPLATE = {"metadata": META, "spec": POD}
CLAIM = {"metadata": META,
         "spec": {"accessModes": [str], "resources": {"requests": TEXT}}}
PEER = [{"podSelector": SELECTOR, "namespaceSelector": SELECTOR}]
PORTS = [{"protocol": str, "port": int}]
KINDS = {
    ("v1", "Namespace"): {},
    ("v1", "ServiceAccount"): {"automountServiceAccountToken": bool},
    ("v1", "Service"): {"spec": {"clusterIP": str, "publishNotReadyAddresses": bool,
                                 "selector": TEXT,
                                 "ports": [{"name": str, "port": int, "targetPort": str}]}},
    ("apps/v1", "StatefulSet"): {"spec": {
        "serviceName": str, "replicas": int, "podManagementPolicy": str, "selector": SELECTOR,
        "template": TEMPLATE, "volumeClaimTemplates": [CLAIM]}},
    ("apps/v1", "Deployment"): {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {"spec": {
        "scaleTargetRef": {"apiVersion": str, "kind": str, "name": str},
        "minReplicas": int, "maxReplicas": int,
        "metrics": [{"type": str, "resource": {
            "name": str, "target": {"type": str, "averageUtilization": int}}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": int}}}},
    ("policy/v1", "PodDisruptionBudget"): {"spec": {"maxUnavailable": object,
                                                    "selector": SELECTOR}},
    ("networking.k8s.io/v1", "NetworkPolicy"): {"spec": {
        "podSelector": SELECTOR, "policyTypes": [str],
        "ingress": [{"from": PEER, "ports": PORTS}], "egress": [{"to": PEER, "ports": PORTS}]}},
}


def wrong_fields(value, shape, at=""):
    """What is not of the shape, as texts."""
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{at}: not a list"]
        return [w for k, v in enumerate(value) for w in wrong_fields(v, shape[0], f"{at}[{k}]")]
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{at}: not an object"]
        wrong = []
        for key, inner in value.items():
            if key in shape or "*" in shape:
                wrong += wrong_fields(inner, shape.get(key, shape.get("*")), f"{at}.{key}")
            else:
                wrong.append(f"{at}: no field {key}")
        return wrong
    if shape is int and isinstance(value, bool) or not isinstance(value, shape):
        return [f"{at}: {value!r} is no {shape.__name__}"]
    return []


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def documents():
    listed = yaml.safe_load(read(os.path.join(FOLDER, "kustomization.yaml")))["resources"]
    return [d for name in listed for d in yaml.safe_load_all(read(os.path.join(FOLDER, name)))]


def of_kind(*kinds):
    return [d for d in documents() if d["kind"] in kinds]


def workloads():
    return of_kind("StatefulSet", "Deployment")


def pod_of(workload):
    return workload["spec"]["template"]["spec"]


def container_of(workload):
    (container,) = pod_of(workload)["containers"]
    return container


def role_of(workload):
    args = container_of(workload)["args"]
    return args[args.index("serve") + 1]


class Manifests(unittest.TestCase):
    def test_every_file_is_listed(self):
        listed = yaml.safe_load(read(os.path.join(FOLDER, "kustomization.yaml")))["resources"]
        there = {os.path.basename(p) for p in glob.glob(os.path.join(FOLDER, "*.yaml"))}
        self.assertEqual(there, set(listed) | {"kustomization.yaml"})

    def test_the_api_has_every_field(self):
        for d in documents():
            shape = KINDS[(d["apiVersion"], d["kind"])]
            head = {"apiVersion": str, "kind": str, "metadata": META}
            self.assertEqual(wrong_fields(d, {**head, **shape}, d["metadata"]["name"]), [])

    def test_wrong_fields_are_found(self):
        shape = KINDS[("apps/v1", "Deployment")]
        for wrong in ({"spec": {"replica": 1}}, {"spec": {"selector": []}},
                      {"spec": {"template": {"spec": {"containers": [{"args": [1]}]}}}}):
            self.assertEqual(len(wrong_fields(wrong, shape)), 1, wrong)

    def test_one_of_each_role(self):
        self.assertEqual(sorted(role_of(w) for w in workloads()),
                         ["coordinator", "optimizer", "store", "verifier", "worker"])
        names = [(d["kind"], d["metadata"]["name"]) for d in documents()]
        self.assertEqual(len(names), len(set(names)))

    def test_selectors_select_what_is_meant(self):
        labels = {w["metadata"]["name"]: w["spec"]["template"]["metadata"]["labels"]
                  for w in workloads()}

        def selected(selector):
            return [n for n, l in labels.items() if selector.items() <= l.items()]

        for w in workloads():
            self.assertEqual(selected(w["spec"]["selector"]["matchLabels"]),
                             [w["metadata"]["name"]])
        for s in of_kind("Service"):
            self.assertEqual(selected(s["spec"]["selector"]), [s["metadata"]["name"]])
        budgets = [selected(b["spec"]["selector"]["matchLabels"])
                   for b in of_kind("PodDisruptionBudget")]
        self.assertEqual(sorted(budgets), sorted([n] for n in labels))
        scaled = {(h["spec"]["scaleTargetRef"]["kind"], h["spec"]["scaleTargetRef"]["name"])
                  for h in of_kind("HorizontalPodAutoscaler")}
        self.assertEqual(scaled, {(w["kind"], w["metadata"]["name"])
                                  for w in of_kind("Deployment")})
        for policy in of_kind("NetworkPolicy"):
            for selector in re.findall(r"'app.kubernetes.io/[^}]*", str(policy["spec"])):
                found = dict(re.findall(r"'(app[^']*)': '([^']*)'", selector))
                self.assertTrue(selected(found), selector)

    def test_ports_meet(self):
        for s in of_kind("StatefulSet"):
            self.assertIn(s["spec"]["serviceName"],
                          [v["metadata"]["name"] for v in of_kind("Service")])
        for w in workloads():
            c = container_of(w)
            ports = {p["name"]: p["containerPort"] for p in c["ports"]}
            flags = dict(a[2:].split("=", 1) for a in c["args"] if "=" in a)
            self.assertEqual(ports["metrics"], int(flags["metrics-listen"].split(":")[1]))
            if "listen" in flags:
                self.assertEqual(ports["grpc"], int(flags["listen"].split(":")[1]))
            self.assertIn(c["livenessProbe"]["httpGet"]["port"], ports)
            annotations = w["spec"]["template"]["metadata"]["annotations"]
            self.assertEqual(int(annotations["prometheus.io/port"]), ports["metrics"])
            for service in of_kind("Service"):
                if service["metadata"]["name"] != w["metadata"]["name"]:
                    continue
                for p in service["spec"]["ports"]:
                    self.assertEqual(ports[p["targetPort"]], p["port"])
        listened = {p["containerPort"] for w in workloads() for p in container_of(w)["ports"]}
        for policy in of_kind("NetworkPolicy"):
            for rule in policy["spec"].get("ingress", []) + policy["spec"].get("egress", []):
                self.assertLessEqual({p["port"] for p in rule["ports"]}, listened | {53})
        # Addresses in flags are services and their ports.
        services = {s["metadata"]["name"]: {p["port"] for p in s["spec"]["ports"]}
                    for s in of_kind("Service")}
        for w in workloads():
            for name, port in re.findall(r"([a-z-]+)\.tenon\.svc:(\d+)", str(container_of(w))):
                self.assertIn(int(port), services[name])

    def test_volumes_and_secrets_meet(self):
        made = read(os.path.join(FOLDER, "README.md"))
        secrets = {m[0]: set(re.findall(r"--from-file=(\S+)", m[1]))
                   for m in re.findall(r"create secret generic (\S+) (.*)", made)}
        for w in workloads():
            pod, c = pod_of(w), container_of(w)
            volumes = {v["name"]: v for v in pod["volumes"]}
            claims = {v["metadata"]["name"] for v in w["spec"].get("volumeClaimTemplates", [])}
            first = pod.get("initContainers", [])
            mounts = {m["name"]: m["mountPath"] for x in [c, *first] for m in x["volumeMounts"]}
            self.assertEqual(set(mounts), set(volumes) | claims)
            files = set()
            for name, volume in volumes.items():
                if "secret" not in volume:
                    continue
                keys = secrets[volume["secret"]["secretName"]]
                if "items" in volume["secret"]:
                    items = {i["key"] for i in volume["secret"]["items"]}
                    self.assertLessEqual(items, keys)
                    keys = {i["path"] for i in volume["secret"]["items"]}
                files |= {mounts[name] + "/" + k for k in keys}
            used = set(re.findall(r"/etc/tenon/[\w./-]+", str([c, first]))) - set(mounts.values())
            self.assertTrue(used)
            self.assertLessEqual(used, files)
            # Only servers get the key.
            self.assertEqual("tls.key" in str(sorted(files)), "--listen=" in str(c["args"]))

    def test_as_many_stores_as_the_coordinator_awaits(self):
        by_role = {role_of(w): w for w in workloads()}
        self.assertIn(f"--min-stores={by_role['store']['spec']['replicas']}",
                      container_of(by_role["coordinator"])["args"])
        self.assertEqual(by_role["coordinator"]["spec"]["replicas"], 1)

    def test_pods_may_do_little(self):
        for w in workloads():
            self.assertTrue(pod_of(w)["securityContext"]["runAsNonRoot"])
            for c in [container_of(w), *pod_of(w).get("initContainers", [])]:
                context = c["securityContext"]
                self.assertTrue(context["readOnlyRootFilesystem"])
                self.assertFalse(context["allowPrivilegeEscalation"])
                self.assertEqual(context["capabilities"]["drop"], ["ALL"])

    def test_the_program_has_the_flags(self):
        for w in workloads():
            text = subprocess.run([TENON, "serve", role_of(w), "--help"], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
            known = set(re.findall(r"^  (--[a-z-]+)", text, re.M))
            args = container_of(w)["args"]
            given = {a.split("=")[0] for a in args[args.index("serve") + 2:]}
            self.assertLessEqual(given, known)


def patched(workload, operations):
    """A copy of a workload after the operations of a JSON patch."""
    out = json.loads(json.dumps(workload))
    for o in operations:
        *way, last = o["path"].split("/")[1:]
        at = out
        for step in way:
            at = at[int(step)] if isinstance(at, list) else at[step]
        if o["op"] == "remove":
            del at[last]
        elif last == "-":
            at.append(o["value"])
        else:
            if o["op"] == "replace":
                assert last in at, o["path"]
            at[last] = o["value"]
    return out


class HighAvailability(unittest.TestCase):
    """deploy/kubernetes-ha: patches of the manifests above."""
    FOLDER = os.path.join(ROOT, "deploy", "kubernetes-ha")

    def load(self, name):
        return yaml.safe_load(read(os.path.join(self.FOLDER, name)))

    def workloads(self):
        """All of them as patched, by role."""
        listed = self.load("kustomization.yaml")
        self.assertEqual(listed["resources"], ["../kubernetes", "network.yaml"])
        out = {role_of(w): w for w in workloads()}
        hit = set()
        for patch in listed["patches"]:
            for role, w in out.items():
                if (w["kind"] == patch["target"]["kind"]
                        and re.fullmatch(patch["target"]["name"], w["metadata"]["name"])):
                    out[role] = patched(w, self.load(patch["path"]))
                    hit.add(role)
        self.assertEqual(hit, set(out))
        return out

    def test_patched_manifests_are_sound(self):
        head = {"apiVersion": str, "kind": str, "metadata": META}
        for role, w in self.workloads().items():
            shape = {**head, **KINDS[(w["apiVersion"], w["kind"])]}
            self.assertEqual(wrong_fields(w, shape, role), [])
            pod, c = pod_of(w), container_of(w)
            self.assertEqual({m["name"] for x in [c, *pod.get("initContainers", [])]
                              for m in x["volumeMounts"]},
                             {v["name"] for v in pod["volumes"]}
                             | {v["metadata"]["name"]
                                for v in w["spec"].get("volumeClaimTemplates", [])})
            text = subprocess.run([TENON, "serve", role, "--help"], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
            args = c["args"]
            self.assertLessEqual({a.split("=")[0] for a in args[args.index("serve") + 2:]},
                                 set(re.findall(r"^  (--[a-z-]+)", text, re.M)))
        policy = self.load("network.yaml")
        self.assertEqual(wrong_fields(policy, {**head, **KINDS[(policy["apiVersion"],
                                                                policy["kind"])]}), [])

    def test_nodes_know_every_coordinator_as_it_calls_itself(self):
        by_role = self.workloads()
        coordinator = by_role["coordinator"]
        flags = dict(a.split("=", 1) for a in container_of(coordinator)["args"] if "=" in a)
        names = [flags["--advertise"].replace("$(POD)", f"tenon-coordinator-{k}")
                 for k in range(coordinator["spec"]["replicas"])]
        self.assertGreater(len(names), 1)
        for role in ("store", "worker", "verifier", "optimizer"):
            given = [a for a in container_of(by_role[role])["args"] if "--coordinator=" in a]
            self.assertEqual(given[-1], "--coordinator=" + ",".join(names))
        # All of them sign alike, and find their certificates.
        self.assertIn("--key", flags)
        mounted = {m["mountPath"] for m in container_of(coordinator)["volumeMounts"]}
        for flag in ("--etcd-ca", "--etcd-certificate", "--etcd-key"):
            self.assertIn(os.path.dirname(flags[flag]), mounted)


class PodsHere(unittest.TestCase):
    """The command lines of the pods, on this machine: paths and addresses are replaced."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tenon-pods-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for name in ("tls", "node", "signing", "made", "run"):
            os.mkdir(self.path(name))
        self.replace = {"/etc/tenon": self.folder, "/run/tenon": self.path("run"),
                        "0.0.0.0:7480": "127.0.0.1:0", "0.0.0.0:7400": "127.0.0.1:0",
                        "0.0.0.0:7402": "127.0.0.1:0", "nn@stable": "matrix",
                        "--refresh=60": "--refresh=1"}

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def test_secrets_as_described_pods_and_probes_work(self):
        # The commands of the README, as far as they make files.
        block = re.search(r"```\n(   openssl.*?)   kubectl", read(os.path.join(FOLDER,
                          "README.md")), re.S).group(1)
        script = re.sub(r"^   tenon ", shlex.quote(TENON) + " ", block, flags=re.M)
        made = subprocess.run(["bash", "-euo", "pipefail", "-c", script], text=True,
                              cwd=self.path("made"), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        self.assertEqual(made.returncode, 0, made.stdout)
        for name, to in (("ca.crt", "tls"), ("tls.crt", "tls"), ("tls.key", "tls"),
                         ("token", "node"), ("key", "signing")):
            shutil.move(self.path("made", name), self.path(to, name))
            os.chmod(self.path(to, name), 0o640)  # As the kubelet does for a pod with a group.
        os.rename(self.path("made"), self.path("tokens"))
        by_role = {role_of(w): w for w in workloads()}
        coordinator = self.start(by_role["coordinator"])
        self.replace["tenon-coordinator.tenon.svc:7400"] = coordinator
        self.probe(by_role["coordinator"], "7400", coordinator)
        for k in range(by_role["store"]["spec"]["replicas"]):
            self.replace["$(POD)"] = f"tenon-store-{k}"
            port = self.start(by_role["store"], f"store-{k}")
            self.probe(by_role["store"], "7401", port)
        for role in ("worker", "verifier"):
            self.replace["$(POD)"] = role
            self.start(by_role[role])
        job = self.tenon("job", "submit", "--universe", "matrix", "--max-operators", "1", "--wait",
                         "--server", coordinator, "--token", self.path("tokens", "ci.token"),
                         "--tls-ca", self.path("tls", "ca.crt"), "--tls-server-name", "tenon")
        logs = "".join(read(p) for p in glob.glob(self.path("*.log")))
        self.assertEqual(job.returncode, 0, job.stdout + logs)
        optimizer = self.start(by_role["optimizer"])
        metrics = re.search(r"metrics listen on port (\d+)",
                            read(self.path("optimizer.out"))).group(1)
        path = container_of(by_role["optimizer"])["readinessProbe"]["httpGet"]["path"]
        end = time.monotonic() + 60
        while self.answer(f"http://127.0.0.1:{metrics}{path}") != 200:
            self.assertLess(time.monotonic(), end, read(self.path("optimizer.log")))
            time.sleep(0.1)
        subprocess.run(["/usr/bin/python3", ZOO, "--out", self.folder, "--only", "qkv"], check=True,
                       stdout=subprocess.DEVNULL)
        ran = self.tenon("optimize", self.path("qkv.onnx"), "-o", self.path("out.onnx"), "--server",
                         optimizer, "--token", self.path("tokens", "ci.token"), "--tls-ca",
                         self.path("tls", "ca.crt"), "--tls-server-name", "tenon")
        self.assertEqual(ran.returncode, 0, ran.stdout)

    def answer(self, url):
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def tenon(self, *arguments):
        return subprocess.run([TENON, *arguments], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=100, check=False)

    def probe(self, workload, port, address):
        for kind in ("startupProbe", "readinessProbe"):
            command = container_of(workload)[kind]["exec"]["command"]
            self.assertEqual(command[0], "tenon")
            command = [a.replace("127.0.0.1:" + port, address).replace("/etc/tenon", self.folder)
                       for a in command[1:]]
            asked = self.tenon(*command)
            self.assertEqual(asked.returncode, 0, asked.stdout)
            refused = self.tenon(*[a.replace(self.path("node", "token"), os.devnull)
                                   for a in command])
            self.assertNotEqual(refused.returncode, 0)

    def start(self, workload, name=None):
        """Starts a pod's command; returns HOST:PORT of what listens, if anything."""
        name = name or role_of(workload)
        for first in pod_of(workload).get("initContainers", []):
            command = first["command"]
            for old, new in self.replace.items():
                command = [a.replace(old, new) for a in command]
            subprocess.run(command, check=True)
        arguments = []
        for argument in container_of(workload)["args"]:
            for old, new in {**self.replace, "/var/lib/tenon": self.path("data-" + name)}.items():
                argument = argument.replace(old, new)
            arguments.append(argument)
        if role_of(workload) == "store":
            arguments = [a for a in arguments if not a.startswith("--advertise=")]
            arguments = [a.replace("0.0.0.0:7401", "127.0.0.1:0") for a in arguments]
        out, log = self.path(name + ".out"), self.path(name + ".log")
        environment = {"HOME": self.folder, "PATH": os.environ["PATH"]}
        with open(out, "wb") as o, open(log, "wb") as e:
            process = subprocess.Popen([TENON, *arguments], stdout=o, stderr=e, env=environment)
        self.addCleanup(self.end, process, name)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            said = re.search(r"^(?:coordinator|store|optimizer) listens on port (\d+)$", read(out),
                             re.M)
            if said:
                return "127.0.0.1:" + said.group(1)
            if '"event":"working"' in read(log):
                return ""
            self.assertIsNone(process.poll(), read(log))
            time.sleep(0.05)
        return self.fail(name + " did not start: " + read(log))

    def end(self, process, name):
        process.send_signal(signal.SIGTERM)
        try:
            self.assertEqual(process.wait(30), 0, name)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


class Image(unittest.TestCase):
    def test_it_installs_lists_of_this_repository_only(self):
        text = read(os.path.join(ROOT, "deploy", "docker", "Dockerfile")).replace("\\\n", "")
        installs = re.findall(r"(\S+) apt-get install -y --no-install-recommends\s+&&", text)
        self.assertEqual(text.count("apt-get install"), len(installs))
        self.assertEqual([os.path.basename(i) for i in installs], ["build.txt", "runtime.txt"])
        for copied in re.findall(r"^COPY (deploy/\S+)", text, re.M):
            self.assertTrue(os.path.exists(os.path.join(ROOT, copied)), copied)

    def test_debian_has_the_packages(self):
        if not glob.glob("/var/lib/apt/lists/*_Packages*"):
            self.skipTest("** deploy/packages was NOT checked: run apt-get update first")
        listed = {package for path in glob.glob(os.path.join(PACKAGES, "*.txt"))
                  for package in read(path).split()}
        shown = subprocess.run(["apt-cache", "show", "--no-all-versions", *sorted(listed)],
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               check=False).stdout
        self.assertEqual(listed - set(re.findall(r"^Package: (\S+)$", shown, re.M)), set())

    def test_runtime_packages_are_what_the_program_needs(self):
        if shutil.which("dpkg-query") is None or shutil.which("readelf") is None:
            self.skipTest("** runtime.txt was NOT checked: no dpkg-query or readelf here")
        elf = subprocess.run(["readelf", "-d", TENON], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
        needed = set(re.findall(r"Shared library: \[([^\]]+)\]", elf))
        self.assertIn("libc.so.6", needed)
        listed = set(read(os.path.join(PACKAGES, "runtime.txt")).split())
        unused = set(listed) - {"ca-certificates"}  # For --tls without --tls-ca.
        for library in needed - {"libc.so.6", "libm.so.6", "libgcc_s.so.1",
                                 "ld-linux-x86-64.so.2"}:
            owners = {line.split(":")[0] for line in subprocess.run(
                ["dpkg-query", "-S", "*/" + library], text=True, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, check=False).stdout.splitlines()}
            self.assertTrue(owners & listed, f"{library} is of {owners}: not in runtime.txt")
            unused -= owners
        self.assertEqual(unused, set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
