"""What importing does, and what the package shows."""

import subprocess
import sys

import thiele


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_import_is_light():
    heavy = ["sklearn", "pandas", "matplotlib", "scipy", "tqdm"]
    assert run(f"import thiele, sys; print([m for m in {heavy} if m in sys.modules])").strip() == "[]"


def test_names_are_there():
    for name in thiele.__all__:
        assert getattr(thiele, name) is not None
    assert thiele.__version__.count(".") == 2 and set(thiele.__all__) <= set(dir(thiele))


def test_a_library_that_is_not_there_is_explained():
    code = "import os; os.environ['THIELE_LIBRARY'] = '/absent.so'\n"
    code += "try:\n import thiele\nexcept ImportError as error: print(error)"
    assert "install the package with pip" in run(code)
