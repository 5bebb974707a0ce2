"""A pluggy-based plugin framework for agent prompt assembly and context injection."""
