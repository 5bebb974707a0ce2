"""Facts about an agent's surroundings for pluggy-harness: permissions, git state, delegation, platform."""

from harness_facts.config import Approvals, Config, FileAccess
from harness_facts.permissions import Permissions
from harness_facts.plugin import Facts

__all__ = ["Approvals", "Config", "Facts", "FileAccess", "Permissions"]
