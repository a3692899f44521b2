"""Your own likelihood: a log density over arrays in Python, or a compiled function at the speed of C."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from . import _library as c
from ._context import Context
from ._library import lib
from .errors import ArgumentError

_POINTER_TYPE: Any = c.LogDensities.__mro__[1]  # of functions of every type
SUPPORTS = ("real", "positive", "unit", "count", "binary", "class")


class Likelihood:
    """
    How targets y depend on latent functions f, by one function ``logp(y, f, **parameters)``.

    It gets arrays of n points and returns n numbers log p(y | f): minus infinity where y is impossible, never NaN. y is
    (n,), or (n, outputs) of several, of which some may be NaN and are left out; f is (n,) or (n, latents). parameters
    are their names with first guesses; they are positive unless ``unbounded`` lists them, and learned. The arrays
    belong to the library: they must not be written to or kept.

    logp may also be compiled: a function of ctypes, one by numba.cfunc, or an address, of the type of
    ``thiele_likelihood_spec.log_densities`` (include/thiele/likelihood.h).

    moments(f, **parameters), where it is given, returns mean and variance of y given f, for one point at a time: f is a
    number, or (latents,); mean and variance are numbers, or (outputs,). It may be compiled too. What is predicted of
    the mean and the variance of observations comes from it then, many times as fast.

    support says which values y takes: "real", "positive", "unit", "count", "binary" (-1 and +1) or "class" (0 to
    classes - 1). What is predicted of y comes from sums and integrals of exp(logp) over these.

    Pickles by the qualified names of logp and moments, so that they must be functions of a module.
    """

    def __init__(
        self,
        logp: Union[Callable[..., Any], int],
        parameters: Optional[Mapping[str, float]] = None,
        *,
        unbounded: Sequence[str] = (),
        name: Optional[str] = None,
        outputs: int = 1,
        latents: int = 1,
        support: str = "real",
        classes: int = 0,
        moments: Union[Callable[..., Any], int, None] = None,
    ) -> None:
        if support not in SUPPORTS:
            raise ArgumentError(f"support: '{support}' is none of {', '.join(SUPPORTS)}")
        parameters = dict(parameters or {})
        strange = set(unbounded) - set(parameters)
        if strange:
            raise ArgumentError(f"unbounded: '{sorted(strange)[0]}' is no parameter")
        self.logp: Any = logp
        self.name = name or getattr(logp, "__name__", "own").strip("_<>").lower() or "own"
        self.error: Optional[BaseException] = None
        self._arguments = (logp, parameters, tuple(unbounded), self.name, outputs, latents, support, classes, moments)
        self._names = tuple(parameters)
        self._axes = (outputs, latents)
        itself = weakref.ref(self)  # the library's pointers must not keep this object for ever
        self.interpreted = _address(logp) is None or (moments is not None and _address(moments) is None)
        self.moments: Any = moments
        self._function = _pointer("logp", logp, c.LogDensities, lambda *given: _call(itself(), *given))
        self._moments = c.Moments()
        if moments is not None:
            self._moments = _pointer("moments", moments, c.Moments, lambda *given: _call_moments(itself(), *given))
        listed = (c.LikelihoodParameter * max(1, len(parameters)))()
        for place, (parameter, initial) in zip(listed, parameters.items()):
            place.name, place.initial, place.positive = parameter.encode(), initial, parameter not in unbounded
        self._spec = c.LikelihoodSpec(
            size=ctypes.sizeof(c.LikelihoodSpec),
            version=c.LIKELIHOOD_VERSION,
            name=self.name.encode(),
            outputs=outputs,
            latents=latents,
            parameters=len(parameters),
            parameter=listed,
            support=SUPPORTS.index(support),
            classes=classes,
            log_densities=self._function,
            moments=self._moments,
        )
        self._handle = ctypes.c_void_p()
        with Context() as context:
            context.check(
                lib.thiele_likelihood_custom(ctypes.byref(self._handle), context.handle, ctypes.byref(self._spec))
            )
        weakref.finalize(self, lib.thiele_likelihood_destroy, self._handle)

    def _evaluate(self, y: Any, f: Any, phi: Any) -> Any:
        return self.logp(y, f, **dict(zip(self._names, phi)))

    def raise_error(self) -> None:
        """What logp raised during the last call into the library."""
        error, self.error = self.error, None
        if error is not None:
            raise error

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _restore, self._arguments

    def __copy__(self) -> Likelihood:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Likelihood:
        return self

    def __repr__(self) -> str:
        return f"Likelihood({self.name}, parameters={list(self._names)})"


def _address(function: Any) -> Optional[int]:
    """Of a compiled function."""
    if isinstance(function, int):
        return function
    if isinstance(function, _POINTER_TYPE):
        return ctypes.cast(function, ctypes.c_void_p).value
    address: Optional[int] = getattr(function, "address", None)
    return address


def _pointer(name: str, function: Any, kind: Any, interpreted: Callable[..., None]) -> Any:
    """What the library calls: a compiled function, or what calls one of Python."""
    address = _address(function)
    if address is None and not callable(function):
        raise ArgumentError(f"{name} is neither a function of Python nor a compiled one")
    return kind(interpreted if address is None else address)


def _call(own: Optional[Likelihood], n: int, y: Any, f: Any, phi: Any, out: Any, user: object) -> None:
    """From the library, on any of its threads. An error becomes NaN, at which it stops."""
    densities = _array(out, (n,))
    if own is None or own.error is not None:
        densities[:] = np.nan
        return
    outputs, latents = own._axes
    try:
        values = [phi[i] for i in range(len(own._names))]
        at = _array(y, (n, outputs) if outputs > 1 else (n,)), _array(f, (n, latents) if latents > 1 else (n,))
        densities[:] = own._evaluate(*at, values)
    except BaseException as error:
        own.error = error
        densities[:] = np.nan


def _call_moments(own: Optional[Likelihood], f: Any, phi: Any, mean: Any, variance: Any, user: object) -> None:
    """The same for the moments of one point."""
    outputs, latents = own._axes if own else (1, 1)
    means, variances = _array(mean, (outputs,)), _array(variance, (outputs,))
    means[:] = variances[:] = np.nan
    if own is None or own.error is not None:
        return
    try:
        given = dict(zip(own._names, [phi[i] for i in range(len(own._names))]))
        means[:], variances[:] = own.moments(f[0] if latents == 1 else _array(f, (latents,)), **given)
    except BaseException as error:
        own.error = error
        means[:] = variances[:] = np.nan


def _array(pointer: Any, shape: tuple[int, ...]) -> Any:
    count = math.prod(shape)
    memory: Any = (ctypes.c_double * count).from_address(ctypes.addressof(pointer.contents))
    array = np.frombuffer(memory, dtype=np.float64)
    return array if len(shape) == 1 else array.reshape(shape)


def _restore(
    logp: Any,
    parameters: Any,
    unbounded: Any,
    name: str,
    outputs: int,
    latents: int,
    support: str,
    classes: int,
    moments: Any = None,
) -> Likelihood:
    return Likelihood(
        logp,
        parameters,
        unbounded=unbounded,
        name=name,
        outputs=outputs,
        latents=latents,
        support=support,
        classes=classes,
        moments=moments,
    )
