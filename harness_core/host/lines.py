"""Lines of a TOML text: on which one each table, key and list entry is said. tomllib keeps no lines.

Works on texts that tomllib has accepted, and knows nothing of what they mean.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache

import attrs

__all__ = ["lines_of"]

_TOKEN = re.compile(
    r'''
      (?P<skip> [ \t\r]+ | \#[^\n]* )
    | (?P<text> """ (?: [^"\\] | \\. | "(?!"") )* "{3,5}
              | \'\'\' (?: [^'] | '(?!'') )* '{3,5}
              | " (?: [^"\\\n] | \\. )* "
              | ' [^'\n]* ' )
    | (?P<mark> [\[\]{}=,.\n] )
    | (?P<bare> [^\s\[\]{}=,.\#"']+ )
    ''',
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=32)
def lines_of(text: str) -> dict[str, int]:
    """The line of each path, such as ``plugins.guide.config.delays[1]``.

    A table that has a header, or a key, of its own has that line; one that only parts of it are written has the first of
    theirs.
    """
    scan = _Scan(list(_tokens(text)))
    scan.document()
    return scan.implied | scan.said


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line = 1
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "skip":
            yield match[0], line
        line += match[0].count("\n")
    yield "", line


@attrs.define
class _Scan:
    tokens: list[tuple[str, int]]
    at: int = 0
    said: dict[str, int] = attrs.field(factory=dict)
    implied: dict[str, int] = attrs.field(factory=dict)
    entries: dict[str, int] = attrs.field(factory=dict)
    """How many tables each list of tables has so far."""

    @property
    def token(self) -> str:
        return self.tokens[self.at][0]

    def took(self, *wanted: str) -> bool:
        if self.token not in wanted:
            return False
        self.at += 1
        return True

    def document(self) -> None:
        table = ""
        while self.token:
            if self.took("\n"):
                continue
            line = self.tokens[self.at][1]
            if self.took("["):
                table = self.header(line, several=self.took("["))
            else:
                self.pair(table)

    def header(self, line: int, several: bool) -> str:
        path = ""
        keys = self.key()
        for index, key in enumerate(keys):
            path = _joined(path, key)
            self.implied.setdefault(path, line)
            if several and index == len(keys) - 1:
                self.entries[path] = self.entries.get(path, 0) + 1
            if path in self.entries:
                path = f"{path}[{self.entries[path] - 1}]"
        self.said.setdefault(path, line)
        while self.took("]"):
            pass
        return path

    def pair(self, table: str) -> None:
        line = self.tokens[self.at][1]
        path = table
        for key in self.key():
            path = _joined(path, key)
            self.implied.setdefault(path, line)
        self.said.setdefault(path, line)
        self.took("=")
        self.value(path)

    def key(self) -> list[str]:
        keys = [self.name()]
        while self.took("."):
            keys.append(self.name())
        return keys

    def name(self) -> str:
        token = self.token
        self.at += 1
        return str(tomllib.loads(f"key = {token}")["key"]) if token[0] in "\"'" else token

    def value(self, path: str) -> None:
        if self.took("["):
            index = 0
            while self.token and not self.took("]"):
                if self.took("\n", ","):
                    continue
                self.said.setdefault(f"{path}[{index}]", self.tokens[self.at][1])
                self.value(f"{path}[{index}]")
                index += 1
        elif self.took("{"):
            while self.token and not self.took("}"):
                if not self.took("\n", ","):
                    self.pair(path)
        else:
            self.at += 1
            while self.token not in ("", "\n", ",", "]", "}"):
                self.at += 1


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
