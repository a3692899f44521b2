"""The options of a fit, as the library lists them: names, defaults, ranges and what they mean."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

from ._context import Context
from ._library import lib

if TYPE_CHECKING:
    from .likelihood import Likelihood

_TYPES = ("flag", "integer", "number", "text", "list", "program")
OptionValue = Union[bool, int, float, str, None]


@dataclass(frozen=True)
class Option:
    """One entry of the table."""

    name: str
    group: str
    type: str  #: "flag", "integer", "number", "text" or "list"
    default: OptionValue
    default_in_words: str
    low: float  #: of a number
    high: float
    unit: str
    choices: tuple[str, ...]  #: words that it takes, beside "auto" where that is the default
    meaning: str
    more: str


def _default(kind: str, initial: Optional[bytes]) -> OptionValue:
    if initial is None:
        return None
    text = initial.decode()
    if text == "auto" or kind not in ("flag", "integer", "number"):
        return text
    return text == "1" if kind == "flag" else int(text) if kind == "integer" else float(text)


@functools.cache
def options() -> dict[str, Option]:
    """All options of a fit by name, in the order of the reference."""
    found: dict[str, Option] = {}
    for i in range(lib.thiele_fit_option_count()):
        pointer = lib.thiele_fit_option_at(i)
        entry = pointer.contents
        kind = _TYPES[entry.type]
        if kind == "program":
            continue
        choices: list[str] = []
        while (choice := lib.thiele_fit_option_choice(pointer, len(choices))) is not None:
            choices.append(choice.decode())
        name = entry.name.decode()
        found[name] = Option(
            name=name,
            group=entry.group.decode(),
            type=kind,
            default=_default(kind, entry.initial),
            default_in_words=entry.initially.decode(),
            low=entry.low,
            high=entry.high,
            unit=entry.unit.decode(),
            choices=tuple(choices),
            meaning=_readable(entry.meaning.decode()),
            more=_readable(entry.more.decode()),
        )
    return found


def _readable(text: str) -> str:
    """`name` and `=value` as Python's docs have them."""
    return re.sub(r"`=?([^`]*)`", r"``\1``", text)


def describe_options(names: Optional[list[str]] = None, indent: str = "") -> str:
    """Their documentation as docstrings have it."""
    lines = []
    for option in options().values():
        if names is not None and option.name not in names:
            continue
        words = option.default_in_words or repr(option.default)
        lines.append(f"{indent}{option.name} : {option.type}, default {option.default!r} ({words})")
        sentence = option.meaning[0].upper() + option.meaning[1:]
        lines.append(f"{indent}    {sentence}. {option.more}".rstrip())
    return "\n".join(lines)


def join_list(items: Any) -> str:
    """Texts with commas between them, those with commas or quotes inside in double quotes."""
    texts = [str(item) for item in items]
    return ",".join('"' + t.replace('"', '""') + '"' if set(t) & set(',"') or t != t.strip() else t for t in texts)


def option_text(value: Any) -> str:
    """A value as the library reads it: flags, numbers, texts, lists of texts, and for ``set`` a mapping."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={number!r}" for name, number in value.items())
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist") and getattr(value, "ndim", 0) == 1:
        return join_list(value)
    if hasattr(value, "item"):  # a number of NumPy
        value = value.item()
    return str(int(value)) if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


class FitOptions:
    """A thiele_fit_options of the library, and the texts that it borrows."""

    def __init__(self, context: Context, values: Mapping[str, Any], own: Optional[Likelihood]) -> None:
        self.handle = ctypes.c_void_p()
        self._keep: list[Any] = [own]
        context.check(lib.thiele_fit_options_create(ctypes.byref(self.handle), context.handle))
        try:
            for name, value in values.items():
                self._set(context, name, value)
            if own is not None:
                context.check(lib.thiele_fit_options_set_own(self.handle, context.handle, own._handle))
        except BaseException:
            self.close()
            raise

    def _set(self, context: Context, name: str, value: Any) -> None:
        option = options().get(name)
        if value is None or (option is not None and type(value) is type(option.default) and value == option.default):
            return
        text = option_text(value).encode()
        self._keep.append(text)
        context.check(lib.thiele_fit_options_set(self.handle, context.handle, name.encode(), text))

    def __enter__(self) -> FitOptions:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        lib.thiele_free(self.handle)
        self.handle = ctypes.c_void_p()
