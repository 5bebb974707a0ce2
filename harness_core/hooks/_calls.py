"""Adapting a listener's function to the one way in which chains call it: ``call(value, context, call_next)``.

A listener names the arguments it wants, in any order, as pluggy allows. The few usual shapes are adapted without a
loop, since this is on the path of every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from harness_core.hooks.listeners import Listener
from harness_core.hooks.specs import WaterfallSpec

__all__ = ["Call", "adapt"]

Call: TypeAlias = Callable[[Any, Any, Any], Any]

_VALUE, _CONTEXT, _NEXT = 0, 1, 2

_SHAPES: dict[tuple[int, ...], Callable[[Callable[..., Any]], Call]] = {
    (): lambda f: lambda value, context, call_next: f(),
    (_VALUE,): lambda f: lambda value, context, call_next: f(value),
    (_CONTEXT,): lambda f: lambda value, context, call_next: f(context),
    (_NEXT,): lambda f: lambda value, context, call_next: f(call_next),
    (_VALUE, _CONTEXT): lambda f: lambda value, context, call_next: f(value, context),
    (_VALUE, _NEXT): lambda f: lambda value, context, call_next: f(value, call_next),
    (_CONTEXT, _NEXT): lambda f: lambda value, context, call_next: f(context, call_next),
    (_VALUE, _CONTEXT, _NEXT): lambda f: f,
}


def adapt(spec: WaterfallSpec, listener: Listener) -> Call:
    """The listener's function in the chain's calling convention."""
    index = {spec.value: _VALUE, "call_next": _NEXT}
    if spec.context is not None:
        index[spec.context] = _CONTEXT
    order = tuple(index[name] for name in listener.argnames)
    function = listener.function
    shape = _SHAPES.get(order)
    if shape is not None:
        return shape(function)
    return lambda *given: function(*[given[position] for position in order])
