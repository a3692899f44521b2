"""The structs of the package are those of the headers, field by field."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from thiele import _library as c

ROOT = Path(__file__).parents[2]
STRUCTS = {
    "thiele_progress": c.Progress,
    "thiele_context_options": c.ContextOptions,
    "thiele_table_options": c.TableOptions,
    "thiele_column": c.Column,
    "thiele_option": c.Option,
    "thiele_predict_options": c.PredictOptions,
    "thiele_prediction": c.Prediction,
    "thiele_scores": c.Scores,
    "thiele_update_options": c.UpdateOptions,
    "thiele_sums_options": c.SumsOptions,
    "thiele_report_options": c.ReportOptions,
    "thiele_likelihood_parameter": c.LikelihoodParameter,
    "thiele_likelihood_spec": c.LikelihoodSpec,
}


def test_layouts(tmp_path):
    compiler = shutil.which("cc")
    build = Path(os.environ.get("THIELE_LIBRARY", "")).parent
    if compiler is None or not (build / "include" / "thiele" / "version.h").exists():
        pytest.skip("needs a C compiler and the folder of a build")
    lines = []
    for name, kind in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{f[0]} %zu\\n", offsetof({name}, {f[0]}));' for f in kind._fields_]
    source, program = tmp_path / "layouts.c", tmp_path / "layouts"
    body = "\n".join(lines)
    source.write_text(f"#include <stdio.h>\n#include <thiele/thiele.h>\nint main(void)\n{{\n{body}\n}}\n")
    include = ["-I", ROOT / "include", "-I", build / "include"]
    subprocess.run([compiler, "-std=c11", *include, source, "-o", program], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout.split("\n")
    expected = []
    for name, kind in STRUCTS.items():
        expected.append(f"{name} {ctypes.sizeof(kind)}")
        expected += [f"{name}.{f[0]} {getattr(kind, f[0]).offset}" for f in kind._fields_]
    assert printed[:-1] == expected
