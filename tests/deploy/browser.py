"""A headless Chromium, driven by its DevTools protocol over a pipe."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# Chromium itself is to be as quiet as the pages.
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-extensions",
         "--disable-default-apps", "--disable-dev-shm-usage", "--remote-debugging-pipe"]


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="tenon-browser-")
        our_out, their_in = os.pipe(), os.pipe()
        self.to, self.source = our_out[1], their_in[0]
        command = " ".join(["exec chromium", *FLAGS, f"--user-data-dir={self.profile}",
                            f"about:blank 3<&{our_out[0]} 4>&{their_in[1]}"])
        with open(os.path.join(self.profile, "log"), "wb") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", command], pass_fds=(our_out[0], their_in[1]), stdout=log, stderr=log,
                env={**os.environ, "HOME": self.profile})
        os.close(our_out[0])
        os.close(their_in[1])
        self.number = 0
        self.buffer = b""
        self.session = None
        # What the page asked for, what failed, and what it complained about.
        self.requests, self.errors = [], []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.source)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, end):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.source], [], [], max(0, end - time.monotonic()))
            part = os.read(self.source, 1 << 20) if ready else b""
            if not part:
                with open(os.path.join(self.profile, "log"), encoding="utf-8") as log:
                    raise AssertionError("Chromium does not answer: " + log.read()[-3000:])
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Network.loadingFailed":
            self.errors.append("request failed: " + params["errorText"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.errors.append(json.dumps(params))
        elif method == "Page.javascriptDialogOpening":
            self.errors.append("a dialog: " + params["message"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 100
        while True:
            answer = self.receive(end)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.note(answer)

    def screen(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=mobile)

    def open(self, url):
        self.loaded = False
        self.call("Page.navigate", url=url)
        end = time.monotonic() + 100
        while not self.loaded:
            self.note(self.receive(end))

    def ask(self, expression):
        """The value of an expression of JavaScript in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def picture(self):
        """The bytes of a PNG of the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        return base64.b64decode(shot["data"])
