"""Retries of failed model requests for pluggy-harness: exponential, jittered, bounded, announced in the log."""

from harness_retry.plugin import RetryRequests
from harness_retry.policy import Config, Policy, exponential

__all__ = ["Config", "Policy", "RetryRequests", "exponential"]
