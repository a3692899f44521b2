"""One call into the library: its context, its messages as exceptions and warnings, Ctrl-C, and progress."""

from __future__ import annotations

import ctypes
import logging
import signal
import sys
import threading
import warnings
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Callable, Optional, Union

from . import _library as c
from ._library import lib
from ._progress import ProgressReport, reporter
from .errors import BY_STATUS, CANCELLED, ThieleWarning

if TYPE_CHECKING:
    from .likelihood import Likelihood

ProgressLike = Union[bool, None, Callable[[ProgressReport], object]]

_log = logging.getLogger("thiele")


def default_threads() -> int:
    """One in a worker process, whose siblings have the other processors; else 0: one per processor."""
    workers = sys.modules.get("multiprocessing.process")
    return 1 if workers is not None and workers.parent_process() is not None else 0


class Context:
    """
    Lives for one call, used as a context manager. While it is open on the main thread the first Ctrl-C asks the library
    to stop at the next safe point, which takes some 0.1 s; it is raised when the library has returned. own: a
    likelihood in Python, whose errors are raised too.
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        seed: int = 0,
        memory_limit: int = 0,
        device: str | None = None,
        progress: ProgressLike = False,
        own: Likelihood | None = None,
    ) -> None:
        self.interrupts = 0
        self._own = own
        self._error: BaseException | None = None
        self._warnings: list[str] = []
        self._old_handler: object = None
        self._report = reporter(progress)
        self._callbacks = (c.LogFunction(self._on_log), c.ProgressFunction(self._on_progress))
        # Threads that call Python wait for each other, and for the handover, many times as long as one works.
        interpreted = own is not None and own.interpreted
        options = c.ContextOptions(
            size=ctypes.sizeof(c.ContextOptions),
            threads=1 if interpreted else default_threads() if threads is None else threads,
            seed=seed,
            memory_limit=memory_limit,
            log=self._callbacks[0],
            progress=self._callbacks[1],
            device=device.encode() if device is not None else None,
        )
        self.handle = ctypes.c_void_p()
        self.check(lib.thiele_context_create(ctypes.byref(self.handle), ctypes.byref(options)))

    def check(self, status: int) -> None:
        """Raises what a status says, or what was raised in a callback."""
        if self._error is not None:
            raise self._error
        if self._own is not None:
            self._own.raise_error()
        if status == 0:
            return
        if status == CANCELLED and self.interrupts > 0:
            raise KeyboardInterrupt
        message = lib.thiele_context_message(self.handle).decode(errors="replace")
        raise BY_STATUS[status](message)

    def keep_result(self, what: str) -> None:
        """A first Ctrl-C ended the work early, and there is a result that is worth having."""
        if self.interrupts == 1:
            self._warnings.append(what)
            self.interrupts = 0

    def __enter__(self) -> Context:
        if threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self._old_handler = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lib.thiele_context_destroy(self.handle)
        self.handle = ctypes.c_void_p()
        if self._old_handler is not None:
            signal.signal(signal.SIGINT, self._old_handler)  # type: ignore[arg-type]
        self._report.close()
        del self._callbacks
        for line in self._warnings:
            warnings.warn(line, ThieleWarning, stacklevel=_outside())
        if error is None and self.interrupts > 0:
            raise KeyboardInterrupt

    # From the library, on the thread that called it. Nothing may be raised through C.

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        self.interrupts += 1

    def _on_log(self, level: int, line: bytes, user: object) -> None:
        text = line.decode(errors="replace")
        if level > 0:
            self._warnings.append(text)
        else:
            _log.info("%s", text)

    def _on_progress(self, progress: ctypes._Pointer[c.Progress], user: object) -> int:  # type: ignore[type-arg]
        try:
            stop = self._report.tell(progress.contents)
        except BaseException as error:
            self._error = error
            stop = True
        return int(stop or self.interrupts > 0)


def _outside() -> int:
    """The stacklevel of the first frame outside this package."""
    level, frame = 1, sys._getframe(1)
    package = __name__.rpartition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    return level
