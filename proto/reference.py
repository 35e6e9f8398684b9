#!/usr/bin/env python3
"""Writes docs/protocol.md from the comments of proto/tenon/v1/*.proto, which are the contract.

usage: proto/reference.py            writes the file
       proto/reference.py --check    exit code 1 when the file is not what would be written
"""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
OUT = os.path.join(ROOT, "docs", "protocol.md")
FILES = ["common", "jobs", "work", "store", "registry", "optimize", "universe"]

HEAD = """# Protocol

What `tenon` programs say to each other and to yours, over gRPC. This page is made from the comments
of `proto/tenon/v1` by `proto/reference.py`; change those. Servers have the standard health service
and reflection, so that generic clients work too.

"""


class Reader:
    """Reads a .proto file that is written as ours are: a declaration a line, comments above it or
    behind it."""

    def __init__(self, text):
        self.lines = text.split("\n")
        self.at = 0
        self.comment = []

    def take(self):
        line = self.lines[self.at].strip()
        self.at += 1
        return line

    def note(self):
        """The comment above what comes now."""
        text, self.comment = self.comment, []
        return text

    def read(self):
        """(head, [(kind, name, comment, entries)])"""
        head, blocks = [], []
        while self.at < len(self.lines):
            line = self.take()
            if line.startswith("//"):
                self.comment.append(line[2:].removeprefix(" "))
            elif line.startswith("syntax"):
                head = self.note()
            elif block := re.match(r"(service|message|enum) (\w+) \{(\})?$", line):
                kind, name, empty = block.groups()
                comment = self.note()
                blocks += [] if empty else self.body(kind, name)
                blocks.append((kind, name, comment, [] if empty else self.entries))
            elif not line:
                self.comment = []
        return head, blocks

    def body(self, kind, name):
        """Sets self.entries; returns the blocks inside."""
        entries, inner, oneof = [], [], None
        while (line := self.take()) != "}" or oneof:
            if line == "}":
                oneof = None
            elif line.startswith("//"):
                self.comment.append(line[2:].removeprefix(" "))
            elif opened := re.match(r"oneof (\w+) \{$", line):
                oneof = opened.group(1)
                self.comment = []
            elif opened := re.match(r"(enum|message) (\w+) \{$", line):
                comment, inside = self.note(), f"{name}.{opened.group(2)}"
                inner += self.body(opened.group(1), inside)
                inner.append((opened.group(1), inside, comment, self.entries))
            elif line and not line.startswith("reserved"):
                entries.append(self.entry(kind, line, oneof))
            elif not line:
                self.comment = []
        self.entries = entries
        return inner

    def entry(self, kind, line, oneof):
        comment = self.note()
        code, _, behind = line.partition("//")
        # A comment behind a declaration goes on below it, further to the right.
        if behind:
            comment.append(behind.strip())
            while re.match(r" {8,}//", self.lines[self.at]):
                comment.append(self.take()[2:].strip())
        patterns = {
            "service": r"rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);",
            "message": r"((?:repeated |optional )?[\w.]+) (\w+) = (\d+);",
            "enum": r"(\w+) = (\d+);"}
        found = re.match(patterns[kind], code.strip())
        if not found:
            sys.exit(f"cannot read: {line}")
        return found.groups(), " ".join(comment), oneof


def paragraphs(comment):
    """A comment as Markdown: blank lines part paragraphs, "- " starts an item."""
    out = []
    for line in comment:
        line = line.strip()
        if not line:
            out.append("")
        elif line.startswith("- ") or not out or out[-1] == "":
            out.append(line)
        else:
            out[-1] += " " + line
    return "\n".join(out)


def cell(text):
    return text.replace("|", "\\|")


def write_block(block):
    kind, name, comment, entries = block
    lines = [f"### {kind} {name}" if kind != "service" else f"## {name}"]
    if comment:
        lines.append(paragraphs(comment))
    if kind == "service":
        for (method, in_stream, request, out_stream, response), text, _ in entries:
            lines += [f"### {name}.{method}",
                      f"`{in_stream or ''}{request}` → `{out_stream or ''}{response}`", text]
    elif kind == "message" and entries:
        rows = ["| field | type | number | |", "| --- | --- | --- | --- |"]
        for (kind_of, field, number), text, oneof in entries:
            one = f"One of `{oneof}`. " if oneof else ""
            rows.append(f"| `{field}` | {kind_of} | {number} | {cell(one + text)} |")
        lines.append("\n".join(rows))
    elif kind == "message":
        lines.append("No fields.")
    else:
        rows = ["| value | number | |", "| --- | --- | --- |"]
        rows += [f"| `{value}` | {number} | {cell(text)} |" for (value, number), text, _ in entries]
        lines.append("\n".join(rows))
    return "\n\n".join(lines)


def reference():
    parts, calls = [], []
    for name in FILES:
        with open(os.path.join(ROOT, "proto", "tenon", "v1", name + ".proto"),
                  encoding="utf-8") as file:
            head, blocks = Reader(file.read()).read()
        services = [b for b in blocks if b[0] == "service"]
        title = "Conventions" if name == "common" else f"`{name}.proto`"
        parts.append(f"# {title}\n\n{paragraphs(head)}")
        parts += [write_block(b) for b in services + [b for b in blocks if b[0] != "service"]]
        for _, service, _, entries in services:
            for (method, *_), text, _ in entries:
                role = re.search(r"Role: ([\w, ]+)\.", text)
                anchor = f"#{service.lower()}{method.lower()}"
                does = re.split(r"(?<=[.:;]) ", text)[0].rstrip(".:;")
                calls.append(f"| [{service}.{method}]({anchor}) | {role.group(1) if role else ''} "
                             f"| {cell(does)} |")
    table = "| call | role | what |\n| --- | --- | --- |\n" + "\n".join(calls)
    return HEAD + table + "\n\n" + "\n\n".join(parts) + "\n"


def main():
    text = reference()
    if sys.argv[1:] == ["--check"]:
        with open(OUT, encoding="utf-8") as file:
            if file.read() != text:
                sys.exit("docs/protocol.md is not made from these files; run proto/reference.py")
        return
    if sys.argv[1:]:
        sys.exit(__doc__)
    with open(OUT, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
