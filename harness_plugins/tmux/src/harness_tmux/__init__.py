"""Where an agent runs, for pluggy-harness: session, window and pane of tmux."""

from harness_tmux.plugin import Config, TmuxContext

__all__ = ["Config", "TmuxContext"]
