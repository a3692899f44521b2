"""The options of thiele.fit for type checkers. Written by scripts/options from src/model/options.def."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict, Union

from .likelihood import Likelihood


class OptionTypes(TypedDict, total=False):
    """What each option may be; thiele.options() says what it means."""

    inputs: Union[str, Sequence[str]]
    ignore: Union[str, Sequence[str]]
    categorical: Union[str, Sequence[str]]
    level_scales: bool
    rare_levels: Union[int, Literal["auto"]]
    classes: Union[str, Sequence[str]]
    exposure: str
    partition: str
    missing_inputs: str
    drop_missing: bool
    raw: bool
    weights: str
    likelihood: Union[str, Likelihood]
    noise: str
    expectation: str
    method: str
    kernel: str
    share_kernel: bool
    mean: str
    set: Union[str, Mapping[str, float]]
    prior: Union[str, Sequence[str]]
    compact: bool
    inducing: Union[int, Literal["auto"]]
    inducing_from: str
    fix_inducing: bool
    posterior: str
    entropy: str
    plain: bool
    optimiser: str
    batch: Union[int, Literal["auto"]]
    rate: Union[float, Literal["auto"]]
    restarts: int
    deadline: float
    effort: str
    iterations: Union[int, Literal["auto"]]
    epochs: Union[int, Literal["auto"]]
    tolerance: Union[float, Literal["auto"]]
    chains: Union[int, Literal["auto"]]
    draws: Union[int, Literal["auto"]]
    burn_in: Union[int, Literal["auto"]]
    thin: Union[int, Literal["auto"]]
    step: Union[float, Literal["auto"]]
    leaps: Union[int, Literal["auto"]]
    blocks: Union[int, Literal["auto"]]
    anytime: bool
    step_blocks: Union[int, Literal["auto"]]
    schedule: str
    mean_inducing: Union[int, Literal["auto"]]
    growth: Union[int, Literal["auto"]]
    decoupled: str
    own_scales: bool
    holdout: float
    calibrate: bool
    keep: Union[int, Literal["auto"]]
    snapshot: Union[float, Literal["auto"]]
