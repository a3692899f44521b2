"""
The draws that a sampler kept, from the model's own file (docs/file-format.md): of each of them the file has the weights
a, and with the factor L of the covariance at the basis, L L' = scale K scale, the function there is m + K a.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import UnsupportedError

if TYPE_CHECKING:
    from .model import Model

Array = NDArray[np.float64]


def _tensors(content: bytes) -> dict[str, Array]:
    """The layout of safetensors: the length of a header, the header, and numbers."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    numbers = np.frombuffer(content, dtype="<f8", offset=8 + length)
    made = {}
    for name, about in header.items():
        if name != "__metadata__":
            first, last = about["data_offsets"]
            made[name] = numbers[first // 8 : last // 8].reshape(about["shape"])
    return made


def draws_of(model: Model) -> Array:
    """(chains, draws, rows): the latent function at the basis, the training rows unless it is sparse."""
    about = model.describe()
    sampling = about.get("sampling")
    if not sampling:
        raise UnsupportedError(
            f"a model by {about['method']} has no draws: fit it by a sampler (gibbs, ess, hmc, mh), or draw "
            "predictions with predict(..., samples=)"
        )
    if len(about["latents"]) != 1 or len(model.targets) != 1:
        raise UnsupportedError("draws are handed out of models of one latent function, and this one has several")
    found = _tensors(model.to_bytes())
    size = len(found["inputs"])
    factor = np.zeros((size, size))
    factor[np.triu_indices(size)] = found["factor"]  # L by columns is L' by rows
    scale = found.get("scale", np.ones(size))
    f = (found["weights"] / scale) @ factor.T @ factor / scale
    mean = found["mean"]
    if len(mean) > 0:
        f = f + mean[0] + (found["inputs"] @ mean[1:] if len(mean) > 1 else 0.0)
    target = about["columns"]["targets"][0]
    if "center" in target:
        f = f * target["scale"] + target["center"]
    return f.reshape(sampling["chains"], -1, size)


def to_arviz(model: Model) -> Any:
    """The draws as ArviZ takes them: variable f, dimensions chain, draw and row."""
    import arviz

    f = draws_of(model)
    if hasattr(arviz, "InferenceData"):  # before 1.0
        return arviz.from_dict(posterior={"f": f}, dims={"f": ["row"]})
    return arviz.from_dict({"posterior": {"f": f}}, dims={"f": ["row"]})
