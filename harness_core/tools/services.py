"""Services: what one plugin offers to others without either importing the other; and the contracts of the usual two.

A service is found by the protocol it fulfils, nearest scope first. The framework brings none itself: without a file
system or shell service, a plugin that wants one does nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar, cast

import attrs

from harness_core.scopes import Effects, Handle, ScopeNode
from harness_core.scopes.layers import ScopedTable

__all__ = ["BatchFileSystem", "FileInfo", "FileSystem", "ScopedServices", "Services", "Shell", "ShellResult"]

S = TypeVar("S")


@attrs.frozen(kw_only=True)
class FileInfo:
    """What is known of a path, links followed. ``version`` changes whenever the content may have."""

    kind: str
    """``"file"``, ``"directory"`` or ``"other"``."""
    size: int | None
    """Bytes, where known beforehand."""
    version: str


class FileSystem(Protocol):
    """Files as the deployment lets its plugins see them. Paths are absolute."""

    async def info(self, path: str) -> FileInfo | None:
        """What is at the path; None when there is nothing (a component that is no directory included).

        Raises:
            OSError: it cannot be told.
        """
        ...

    async def read(self, path: str, limit: int) -> bytes:
        """The first ``limit`` bytes at most; read ``limit + 1`` to learn whether there is more.

        Raises:
            OSError: it cannot be read.
        """
        ...

    async def children(self, path: str) -> list[str]:
        """The names in a directory, sorted.

        Raises:
            OSError: it cannot be listed.
        """
        ...


class BatchFileSystem(FileSystem, Protocol):
    """A file system that can look at many paths at once. Who asks for few paths, or rarely, does without it.

    Optional: ``getattr(files, "infos", None)`` tells whether a service has it.
    """

    async def infos(self, paths: Sequence[str]) -> Sequence[FileInfo | OSError | None]:
        """What `info` would say of each path; where it would raise, the error takes the place of the answer."""
        ...


@attrs.frozen(kw_only=True)
class ShellResult:
    """A finished command. ``exit_code`` is None where it was killed or timed out."""

    exit_code: int | None
    stdout: str
    stderr: str


class Shell(Protocol):
    """Commands as the deployment lets its plugins run them."""

    async def run(self, command: str, *, cwd: str | None = None, timeout: float = 10.0) -> ShellResult:
        """Run a command line to its end, or kill it after ``timeout`` seconds; cancelling kills it too.

        Raises:
            Exception: the deployment refuses the command, or it cannot be started.
        """
        ...


class Services:
    """All services of one tree of scopes."""

    def __init__(self) -> None:
        self.table: ScopedTable[type, object] = ScopedTable("service")

    def at(self, scope: ScopeNode, owner: Effects | None = None) -> ScopedServices:
        return ScopedServices(self, scope, owner if owner is not None else scope.effects)

    def find(self, scope: ScopeNode, protocol: type[S]) -> S | None:
        """The nearest service of that protocol."""
        return cast("S | None", self.table.find(scope, protocol))

    def effective(self, scope: ScopeNode) -> dict[type, object]:
        """All services that the scope finds, by protocol."""
        return self.table.effective(scope)


class ScopedServices:
    """Offers and finds services in one scope, on behalf of one owner."""

    __slots__ = ("_owner", "_services", "scope")

    def __init__(self, services: Services, scope: ScopeNode, owner: Effects) -> None:
        self._services = services
        self._owner = owner
        self.scope = scope

    def provide(self, protocol: type[S], service: S) -> Handle:
        """Offer a service to this scope and those below it.

        Raises:
            DuplicateNameError: the scope offers one of that protocol already.
        """
        return self._services.table.file(self.scope, self._owner, protocol, service)

    def get(self, protocol: type[S], scope: ScopeNode | None = None) -> S | None:
        """The nearest service of that protocol, seen from this scope or another; None when there is none."""
        return self._services.find(scope if scope is not None else self.scope, protocol)
