"""Ctrl-C, progress and errors in callbacks: a model, or a clean exception."""

import os
import random
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import thiele

LONG = dict(likelihood="student-t", inducing=40, method="variational", epochs=100000, kernel="se", tolerance=1e-15)


@pytest.fixture(scope="module")
def table():
    return thiele.Table.generate(800, seed=1)


def interrupt_after(seconds, times=1):
    def send():
        for _ in range(times):
            time.sleep(seconds)
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_interrupted_fits_give_the_best_model_so_far(table):
    sender = interrupt_after(0.6)
    with pytest.warns(thiele.ThieleWarning, match="interrupted"):
        model = thiele.fit(table, "strength", ignore="row", **LONG)
    sender.join()
    assert model.stop == "cancelled" and np.isfinite(model.predict(table).mean).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupts_at_random_moments(table):
    generator = random.Random(0)
    for _ in range(6):
        sender = interrupt_after(generator.uniform(0.0, 0.15))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                thiele.fit(table, "strength", ignore="row", **LONG)
            sender.join()
        except KeyboardInterrupt:
            sender.join()
    assert thiele.fit(table, "strength", ignore="row", iterations=0, kernel="se").targets == ["strength"]


def test_progress_is_told_and_may_stop(table):
    told = []

    def tell(report):
        told.append(report)
        return len(told) == 3

    model = thiele.fit(table, "strength", ignore="row", progress=tell, **LONG)
    assert model.stop == "cancelled" and told[-1].seconds >= told[0].seconds and told[0].phase


def test_errors_in_callbacks_are_raised(table):
    def tell(report):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        thiele.fit(table, "strength", ignore="row", progress=tell, **LONG)


def test_deadline(table):
    began = time.perf_counter()
    model = thiele.fit(table, "strength", ignore="row", deadline=0.3, **LONG)
    assert model.stop == "deadline" and time.perf_counter() - began < 5.0
    assert np.isfinite(model.predict(table).mean).all()
