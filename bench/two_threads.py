#!/usr/bin/env python3
"""
Two fits of one thread each, one after the other and in two Python threads at once: wall seconds, the least of several
turns, and how many times as fast both are done. On an idle machine of two cores or more. Usage, with the package on the
path:
    bench/two_threads.py [--rows 400] [--repeats 15]
"""

import argparse
import threading
import time

import numpy as np

import thiele


def fit(table, seed):
    thiele.fit(table, "y", method="exact", kernel="se(ard)", noise="gaussian", seed=seed, threads=1)


def seconds(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def at_once(table):
    threads = [threading.Thread(target=fit, args=(table, seed)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=15)
    given = parser.parse_args()
    random = np.random.default_rng(0)
    x = random.uniform(-3.0, 3.0, (given.rows, 3))
    table = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}
    table["y"] = np.sin(x[:, 0]) + 0.3 * x[:, 1] + 0.1 * random.standard_normal(given.rows)
    apart = together = np.inf  # in turns, so that what else runs meets both alike
    for _ in range(given.repeats):
        apart = min(apart, seconds(lambda: [fit(table, seed) for seed in (1, 2)]))
        together = min(together, seconds(lambda: at_once(table)))
    print("| one after the other, s | at once, s | times as fast |")
    print("|--:|--:|--:|")
    print(f"| {apart:.2f} | {together:.2f} | {apart / together:.2f} |")


if __name__ == "__main__":
    main()
