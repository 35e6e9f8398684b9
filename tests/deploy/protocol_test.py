"""docs/protocol.md says everything that the compiler sees in proto/tenon/v1, and of each call who
may make it, whether it may be repeated, and its errors.

usage: protocol_test.py    with TENON_BIN_DIR set, or not
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

from google.protobuf import descriptor_pb2

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROTO = os.path.join(ROOT, "proto")
CODES = ("INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "FAILED_PRECONDITION", "DATA_LOSS",
         "RESOURCE_EXHAUSTED", "UNAVAILABLE")


def compiled():
    """What protoc makes of the files."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "set")
        files = sorted(glob.glob(os.path.join(PROTO, "tenon", "v1", "*.proto")))
        subprocess.run(["protoc", "-I", PROTO, f"--descriptor_set_out={out}", *files], check=True)
        with open(out, "rb") as file:
            return descriptor_pb2.FileDescriptorSet.FromString(file.read()).file


class Reference(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(ROOT, "docs", "protocol.md"), encoding="utf-8") as file:
            cls.text = file.read()
        cls.files = compiled()

    def section(self, title):
        found = re.search(rf"^###? {re.escape(title)}$(.*?)(?=^##? |^### |\Z)", self.text,
                          re.M | re.S)
        self.assertIsNotNone(found, f"there is no section '{title}'")
        return found.group(1)

    def test_it_is_made_from_the_files(self):
        ran = subprocess.run([sys.executable, os.path.join(PROTO, "reference.py"), "--check"],
                             text=True, stderr=subprocess.PIPE, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_every_call_is_there_with_what_a_caller_must_know(self):
        calls = 0
        for file in self.files:
            for service in file.service:
                for method in service.method:
                    name = f"{service.name}.{method.name}"
                    text = self.section(name)
                    request, answer = (t.rsplit(".", 1)[-1] for t in (method.input_type,
                                                                      method.output_type))
                    streams = ("stream " if method.client_streaming else "",
                               "stream " if method.server_streaming else "")
                    self.assertIn(f"`{streams[0]}{request}` → `{streams[1]}{answer}`", text)
                    self.assertRegex(text, r"Role: (read|submit|publish|node)\.", name)
                    self.assertRegex(text, "(?i)repeat|changes nothing|again", name)
                    # Calls without a request to be wrong about have no errors of their own.
                    if method.name not in ("ListPacks", "Stats", "Compact", "DropTable"):
                        self.assertTrue(any(code in text for code in CODES), name)
                    calls += 1
        self.assertGreater(calls, 20)

    def check_message(self, message, name):
        text = self.section(f"message {name}")
        for field in message.field:
            self.assertRegex(text, rf"\| `{field.name}` \| [\w. ]+ \| {field.number} \|", name)
        for inner in message.nested_type:
            self.check_message(inner, f"{name}.{inner.name}")
        for enum in message.enum_type:
            self.check_enum(enum, f"{name}.{enum.name}")

    def check_enum(self, enum, name):
        text = self.section(f"enum {name}")
        for value in enum.value:
            self.assertIn(f"| `{value.name}` | {value.number} |", text)

    def test_every_field_and_value_is_there(self):
        for file in self.files:
            for message in file.message_type:
                self.check_message(message, message.name)
            for enum in file.enum_type:
                self.check_enum(enum, enum.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
