"""What machine and programs a run was made with: the first line of every file of results."""

import os
import platform
import re
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUSY = 0.5  # a load above it spoils times


def first_match(pattern, path, otherwise="unknown"):
    try:
        found = re.search(pattern, Path(path).read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    except OSError:
        return otherwise
    return found.group(1).strip() if found else otherwise


def output_of(*words):
    try:
        return subprocess.run(list(map(str, words)), capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def compiler(build):
    """Name and version of the compiler of a build folder, and the kind of build."""
    cache = build / "CMakeCache.txt"
    path = first_match(r"^CMAKE_C_COMPILER:\w+=(.+)$", cache, "")
    words = output_of(path, "--version").splitlines()[:1] if path else []
    return f"{words[0] if words else 'unknown'}, {first_match(r'^CMAKE_BUILD_TYPE:[^=]+=(.+)$', cache)}"


def blas_version():
    words = output_of("pkg-config", "--modversion", "blis-serial") or output_of("pkg-config", "--modversion", "blis")
    return f"BLIS {words}, serial, in thiele" if words else "BLIS, serial, in thiele"


def commit():
    name = output_of("git", "-C", ROOT, "rev-parse", "--short", "HEAD") or "unknown"
    changed = output_of("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no", "src", "include")
    return name + (" with changes" if changed else "")


def facts(build):
    memory = first_match(r"^MemTotal:\s+(\d+)", "/proc/meminfo", "0")
    return {"cpu": first_match(r"^model name\s*:\s*(.+)$", "/proc/cpuinfo", platform.processor()),
            "cores": os.cpu_count(), "memory_gb": round(int(memory) / 2**20, 1),
            "system": f"{platform.system()} {platform.release()}", "python": platform.python_version(),
            "compiler": compiler(build), "blas": blas_version(), "thiele": output_of(build / "thiele", "--version"),
            "commit": commit(), "load": round(os.getloadavg()[0], 2), "date": time.strftime("%Y-%m-%d")}


def warn_if_busy():
    if os.getloadavg()[0] > BUSY:
        print(f"the machine is busy (load {os.getloadavg()[0]:.1f}): times are rough, and void for several threads")
