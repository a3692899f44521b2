"""Exceptions and warnings. Each carries the library's sentence: what went wrong, where, and what to do about it."""

from __future__ import annotations


class ThieleError(Exception):
    """Anything that the library refuses or cannot do."""


class ArgumentError(ThieleError, ValueError):
    """An argument or option is invalid."""


class OutOfMemoryError(ThieleError, MemoryError):
    """Memory is exhausted."""


class LimitError(ThieleError, MemoryError):
    """The work would exceed the memory limit."""


class FileError(ThieleError, OSError):
    """A file could not be read or written."""


class FormatError(ThieleError, ValueError):
    """A file is not in the expected format."""


class DataError(ThieleError, ValueError):
    """The data cannot be used as they are."""


class ColumnError(ThieleError, LookupError):
    """A column is not in the table."""


class NumericError(ThieleError, ArithmeticError):
    """A numerical operation failed."""


class UnsupportedError(ThieleError, NotImplementedError):
    """This build or method cannot do it."""


class CancelledError(ThieleError):
    """Stopped before there was a result."""


class ThieleWarning(UserWarning):
    """What the library noticed and a user should know."""


# By status code (include/thiele/status.h).
BY_STATUS: dict[int, type[ThieleError]] = {
    -1: ArgumentError,
    -2: OutOfMemoryError,
    -3: LimitError,
    -4: FileError,
    -5: FormatError,
    -6: DataError,
    -7: ColumnError,
    -8: NumericError,
    -9: UnsupportedError,
    -10: CancelledError,
}
CANCELLED = -10
