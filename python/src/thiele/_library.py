"""The shared library: where it is, its structs, and the types of its functions (include/thiele)."""

from __future__ import annotations

import ctypes
import os
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_ssize_t,
    c_uint64,
    c_void_p,
)
from pathlib import Path


class Progress(ctypes.Structure):
    _fields_ = [
        ("phase", c_char_p),
        ("done", c_int64),
        ("total", c_int64),
        ("value", c_double),
        ("seconds", c_double),
        ("seconds_left", c_double),
        ("expected", c_double),
        ("divergence", c_double),
        ("step", c_double),
        ("rows_per_second", c_double),
        ("held_out", c_double),
    ]


LogFunction = CFUNCTYPE(None, c_int, c_char_p, c_void_p)
ProgressFunction = CFUNCTYPE(c_int, POINTER(Progress), c_void_p)


class ContextOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("threads", c_int),
        ("seed", c_uint64),
        ("memory_limit", c_size_t),
        ("log", LogFunction),
        ("log_user", c_void_p),
        ("progress", ProgressFunction),
        ("progress_user", c_void_p),
        ("device", c_char_p),
        ("ranks", c_void_p),
    ]


class TableOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("header", c_int),
        ("delimiter", c_char),
        ("missing", c_char_p),
        ("dataset", c_char_p),
    ]


class Column(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("values", c_void_p),
        ("stride", c_ssize_t),
        ("codes", c_void_p),
        ("texts", POINTER(c_char_p)),
        ("text_count", c_int32),
    ]


class Option(ctypes.Structure):
    _fields_ = [
        ("group", c_char_p),
        ("name", c_char_p),
        ("type", c_int),
        ("initial", c_char_p),
        ("initially", c_char_p),
        ("low", c_double),
        ("high", c_double),
        ("unit", c_char_p),
        ("value", c_char_p),
        ("meaning", c_char_p),
        ("more", c_char_p),
    ]


class PredictOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("latent", c_int),
        ("unseen", c_int),
        ("drop_missing", c_int),
        ("quantiles", POINTER(c_double)),
        ("quantile_count", c_int),
        ("samples", c_int),
        ("id", c_char_p),
        ("blend", c_int),
        ("own_block", c_int),
    ]


class Prediction(ctypes.Structure):
    pass


Prediction._fields_ = [
    ("rows", c_int64),
    ("outputs", c_int),
    ("classes", c_int),
    ("row", c_void_p),
    ("mean", c_void_p),
    ("variance", c_void_p),
    ("probability", c_void_p),
    ("quantiles", c_void_p),
    ("samples", c_void_p),
    ("parts", c_int),
    ("part", POINTER(Prediction)),
]
PredictionFunction = CFUNCTYPE(c_int, POINTER(Prediction), c_void_p)


class Scores(ctypes.Structure):
    _fields_ = [("rows", c_int64)] + [
        (name, c_double)
        for name in (
            "rmse", "mae", "smse", "nlpd", "msll", "crps", "coverage50", "coverage90", "coverage95",
            "error_rate", "nlp", "brier", "auc",
        )
    ]  # fmt: skip


class UpdateOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("batch", c_int64),
        ("forget", c_double),
        ("window", c_int64),
        ("unseen", c_int),
        ("drop_missing", c_int),
        ("skip_bad", c_int),
        ("deadline", c_double),
        ("snapshot_file", c_char_p),
        ("snapshot", c_double),
        ("freeze", c_int),
        ("keep", c_int64),
        ("time", c_char_p),
        ("half_life", c_double),
    ]


class SumsOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("unseen", c_int), ("drop_missing", c_int)]


class ReportOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("target", c_char_p),
        ("command", c_char_p),
        ("predict", POINTER(PredictOptions)),
    ]


class LikelihoodParameter(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("initial", c_double), ("positive", c_int)]


LIKELIHOOD_VERSION = 2
_NUMBERS = POINTER(c_double)
LogDensities = CFUNCTYPE(None, c_int64, _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS, c_void_p)
Moments = CFUNCTYPE(None, _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS, c_void_p)


class LikelihoodSpec(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("version", c_int),
        ("name", c_char_p),
        ("outputs", c_int),
        ("latents", c_int),
        ("parameters", c_int),
        ("parameter", POINTER(LikelihoodParameter)),
        ("log_density", c_void_p),
        ("moments", Moments),
        ("support", c_int),
        ("classes", c_int),
        ("user", c_void_p),
        ("coefficients", c_void_p),
        ("log_phi", c_void_p),
        ("log_densities", LogDensities),
    ]


_HANDLE = c_void_p
_OUT = POINTER(c_void_p)
_TEXT_OUT = POINTER(c_void_p)

# name: (result, arguments)
_FUNCTIONS = {
    "thiele_context_create": (c_int, [_OUT, POINTER(ContextOptions)]),
    "thiele_context_destroy": (None, [_HANDLE]),
    "thiele_context_message": (c_char_p, [_HANDLE]),
    "thiele_context_threads": (c_int, [_HANDLE]),
    "thiele_free": (None, [c_void_p]),
    "thiele_version": (c_char_p, []),
    "thiele_table_open": (c_int, [_OUT, _HANDLE, c_char_p, POINTER(TableOptions)]),
    "thiele_table_open_files": (c_int, [_OUT, _HANDLE, POINTER(c_char_p), c_int, POINTER(TableOptions)]),
    "thiele_table_from_columns": (c_int, [_OUT, _HANDLE, c_int64, c_int, POINTER(Column)]),
    "thiele_table_from_arrow": (c_int, [_OUT, _HANDLE, c_void_p]),
    "thiele_table_from_arrow_batch": (c_int, [_OUT, _HANDLE, c_void_p, c_void_p]),
    "thiele_table_column_is_category": (c_int, [_HANDLE, c_int]),
    "thiele_table_generate": (c_int, [_OUT, _HANDLE, c_int64, c_uint64]),
    "thiele_table_destroy": (None, [_HANDLE]),
    "thiele_table_rows": (c_int64, [_HANDLE]),
    "thiele_table_columns": (c_int, [_HANDLE]),
    "thiele_table_column_name": (c_char_p, [_HANDLE, c_int]),
    "thiele_table_find_column": (c_int, [_HANDLE, _HANDLE, c_char_p, POINTER(c_int)]),
    "thiele_table_cell": (c_int, [_HANDLE, _HANDLE, c_int64, c_int, c_char_p, c_size_t]),
    "thiele_date_read": (c_int, [c_char_p, c_char_p, POINTER(c_double)]),
    "thiele_table_write": (c_int, [_HANDLE, _HANDLE, c_char_p]),
    "thiele_fit_option_count": (c_int, []),
    "thiele_fit_option_at": (POINTER(Option), [c_int]),
    "thiele_fit_option_find": (POINTER(Option), [c_char_p]),
    "thiele_fit_option_choice": (c_char_p, [POINTER(Option), c_int]),
    "thiele_fit_options_create": (c_int, [_OUT, _HANDLE]),
    "thiele_fit_options_set": (c_int, [_HANDLE, _HANDLE, c_char_p, c_char_p]),
    "thiele_fit_options_set_own": (c_int, [_HANDLE, _HANDLE, _HANDLE]),
    "thiele_likelihood_custom": (c_int, [_OUT, _HANDLE, POINTER(LikelihoodSpec)]),
    "thiele_likelihood_destroy": (None, [_HANDLE]),
    "thiele_model_attach": (c_int, [_HANDLE, _HANDLE, _HANDLE]),
    "thiele_model_needs_likelihood": (c_char_p, [_HANDLE]),
    "thiele_model_fit": (c_int, [_OUT, _HANDLE, _HANDLE, _HANDLE]),
    "thiele_model_destroy": (None, [_HANDLE]),
    "thiele_model_save": (c_int, [_HANDLE, _HANDLE, c_char_p]),
    "thiele_model_load": (c_int, [_OUT, _HANDLE, c_char_p]),
    "thiele_model_describe": (c_int, [_HANDLE, _HANDLE, _TEXT_OUT]),
    "thiele_model_stop": (c_int, [_HANDLE]),
    "thiele_model_targets": (c_int, [_HANDLE]),
    "thiele_model_target": (c_char_p, [_HANDLE, c_int]),
    "thiele_model_part": (c_void_p, [_HANDLE, c_int]),
    "thiele_model_classes": (c_int, [_HANDLE]),
    "thiele_model_class": (c_char_p, [_HANDLE, c_int]),
    "thiele_model_latents": (c_int, [_HANDLE]),
    "thiele_model_inputs": (c_int, [_HANDLE]),
    "thiele_model_input_name": (c_char_p, [_HANDLE, c_int]),
    "thiele_model_parameters": (c_int, [_HANDLE]),
    "thiele_model_parameter": (c_int, [_HANDLE, c_int, POINTER(c_char_p), POINTER(c_double)]),
    "thiele_model_loo": (c_int64, [_HANDLE, POINTER(POINTER(c_double)), POINTER(POINTER(c_double))]),
    "thiele_model_holdout": (POINTER(Scores), [_HANDLE]),
    "thiele_model_predict": (c_int, [_HANDLE, _HANDLE, _HANDLE, POINTER(PredictOptions), PredictionFunction, c_void_p]),
    "thiele_model_predict_rows": (c_int, [_HANDLE, _HANDLE, c_int64, c_void_p, c_int, c_void_p, c_void_p]),
    "thiele_model_predict_probabilities": (c_int, [_HANDLE, _HANDLE, c_int64, c_void_p, c_void_p]),
    "thiele_model_predict_joint": (c_int, [_HANDLE, _HANDLE, _HANDLE, POINTER(PredictOptions), c_void_p, c_void_p]),
    "thiele_model_score": (c_int, [_HANDLE, _HANDLE, _HANDLE, POINTER(PredictOptions), POINTER(Scores)]),
    "thiele_model_report": (c_int, [_HANDLE, _HANDLE, _HANDLE, POINTER(ReportOptions), c_char_p, _TEXT_OUT]),
    "thiele_model_log_densities": (c_int, [_HANDLE, _HANDLE, _HANDLE, POINTER(PredictOptions), c_void_p]),
    "thiele_cross_validate": (c_int, [_HANDLE, _HANDLE, _HANDLE, c_int, POINTER(Scores), POINTER(Scores)]),
    "thiele_learner_open": (c_int, [_OUT, _HANDLE, _HANDLE, POINTER(UpdateOptions)]),
    "thiele_learner_close": (None, [_HANDLE]),
    "thiele_learner_add": (c_int, [_HANDLE, _HANDLE, _HANDLE]),
    "thiele_learner_settle": (c_int, [_HANDLE, _HANDLE]),
    "thiele_learner_stop": (c_int, [_HANDLE]),
    "thiele_learner_model": (c_int, [_HANDLE, _HANDLE, _OUT]),
    "thiele_sums_open": (c_int, [_OUT, _HANDLE, _HANDLE]),
    "thiele_sums_close": (None, [_HANDLE]),
    "thiele_sums_add": (c_int, [_HANDLE, _HANDLE, _HANDLE, POINTER(SumsOptions)]),
    "thiele_sums_pack": (c_int, [_HANDLE, _HANDLE, _OUT, POINTER(c_size_t)]),
    "thiele_sums_unpack": (c_int, [_HANDLE, _HANDLE, c_char_p, c_size_t]),
    "thiele_sums_model": (c_int, [_HANDLE, _HANDLE, _OUT]),
    "thiele_predictor_open": (c_int, [_OUT, _HANDLE, _HANDLE, c_int]),
    "thiele_predictor_destroy": (None, [_HANDLE]),
    "thiele_predictor_outputs": (c_int, [_HANDLE]),
    "thiele_predictor_row": (c_int, [_HANDLE, c_void_p, c_void_p, c_void_p]),
    "thiele_predictor_probabilities": (c_int, [_HANDLE, c_void_p, c_void_p]),
    "thiele_predictor_message": (c_char_p, [_HANDLE]),
}


def _open() -> ctypes.CDLL:
    """$THIELE_LIBRARY, else the one inside the package, else an installed one."""
    given = os.environ.get("THIELE_LIBRARY")
    beside = Path(__file__).with_name("libthiele.so")
    name = given or (str(beside) if beside.exists() else "libthiele.so")
    try:
        library = ctypes.CDLL(name)
        for function, (result, arguments) in _FUNCTIONS.items():
            getattr(library, function).restype = result
            getattr(library, function).argtypes = arguments
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"the library of thiele could not be loaded ({error}): install the package with pip, or let the "
            "environment variable THIELE_LIBRARY name a libthiele.so of the same version"
        ) from error
    return library


lib = _open()
