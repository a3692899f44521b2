"""Sums over rows: what parts of a table say to a model, made anywhere and added up (include/thiele/sums.h)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Optional

from . import _library as c
from ._context import Context
from ._library import lib

if TYPE_CHECKING:
    from .model import Model


class _Sums:
    """Sums of no rows for a model, in a context."""

    def __init__(self, context: Context, model: Model) -> None:
        self.context, self.handle = context, ctypes.c_void_p()
        context.check(lib.thiele_sums_open(ctypes.byref(self.handle), context.handle, model._handle))

    def unpack(self, part: bytes) -> None:
        if not isinstance(part, (bytes, bytearray, memoryview)):
            raise TypeError(f"a part is the bytes of Model.sums, not {type(part).__name__}; parts come in a list")
        part = bytes(part)
        self.context.check(lib.thiele_sums_unpack(self.handle, self.context.handle, part, len(part)))

    def pack(self) -> bytes:
        bytes_, length = ctypes.c_void_p(), ctypes.c_size_t()
        out = (ctypes.byref(bytes_), ctypes.byref(length))
        self.context.check(lib.thiele_sums_pack(self.handle, self.context.handle, *out))
        try:
            return ctypes.string_at(bytes_.value or 0, length.value)
        finally:
            lib.thiele_free(bytes_)


@contextmanager
def open_sums(context: Context, model: Model) -> Iterator[_Sums]:
    sums = _Sums(context, model)
    try:
        yield sums
    finally:
        lib.thiele_sums_close(sums.handle)


def add_sums(model: Model, parts: Iterable[bytes]) -> bytes:
    """One part in place of several: what ``Model.sums`` would give for all of their rows together, to the bit."""
    with Context() as context, open_sums(context, model) as sums:
        for part in parts:
            sums.unpack(part)
        return sums.pack()


def combine(model: Model, parts: Iterable[bytes], *, threads: Optional[int] = None) -> Model:
    """
    The model at its parameters and inducing inputs, conditioned on the rows of these parts (``Model.sums``) and on no
    others. It has the same bits whatever the order of the parts and wherever they begin.
    """
    handle = ctypes.c_void_p()
    with Context(threads=threads) as context, open_sums(context, model) as sums:
        for part in parts:
            sums.unpack(part)
        context.check(lib.thiele_sums_model(sums.handle, context.handle, ctypes.byref(handle)))
    return type(model)(handle, model.likelihood)


def sums_options(unseen: int, drop_missing: bool) -> c.SumsOptions:
    return c.SumsOptions(size=ctypes.sizeof(c.SumsOptions), unseen=unseen, drop_missing=drop_missing)
