"""Who stands behind a registration. A record that travels with contributions and never takes part in their equality."""

from __future__ import annotations

import attrs

__all__ = ["Origin"]


@attrs.frozen(kw_only=True)
class Origin:
    """The registrant: a plugin activation, or a scope itself where ``plugin`` is None."""

    scope: str
    plugin: str | None = None
    distribution: str | None = None
    version: str | None = None

    def __str__(self) -> str:
        if self.plugin is None:
            return f"scope {self.scope!r}"
        if self.distribution is None:
            return f"plugin {self.plugin!r}"
        return f"plugin {self.plugin!r} ({self.distribution} {self.version})"
