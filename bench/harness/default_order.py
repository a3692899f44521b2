"""In which order the fits of `default` run: what is quick first, in tiers of seconds that are each four times the one
before, so that a run that is ended early has whole columns of as many tables and sides as there was time for. Within a
tier splits come first, then sides, then tables by their size.

Seconds are those of the same table and side in a split that was measured, and else a guess from rows and inputs (two
cores; good to a factor of three, which is all that tiers need).
"""

import math

from .default_tables import SIZES

FIRST, TIMES = 15.0, 4.0  # seconds of the first tier, and how tiers grow
# By side: seconds of N rows and D inputs.
GUESSES = {"constant": lambda N, D: 0.0,
           "thiele": lambda N, D: min(60.0, 3.0 + N / 500),
           "lightgbm": lambda N, D: 1.0 + N * (1 + D / 50) / 2000,
           "lightgbm-quantile": lambda N, D: 3.0 + 3 * N * (1 + D / 50) / 2000,
           "gpboost-20": lambda N, D: 5.0 + N / 40,
           "gpboost-40": lambda N, D: 10.0 + N / 15,
           "sklearn": lambda N, D: 2.0 + 60.0 * (N / 1000) ** 3,
           "gpytorch": lambda N, D: min(160.0, 40.0 + N / 10)}


def tier(seconds):
    return 0 if seconds < FIRST else 1 + int(math.log(seconds / FIRST, TIMES))


def estimate(kept, limit, table, who):
    """kept: (table, side) to seconds."""
    known = kept.get((table, who))
    return min(limit, known if known is not None else GUESSES[who](*SIZES[table]))


def measured(lines):
    """(table, side) to the seconds of any split; one that was ended took as long as it was given."""
    out = {}
    for line in lines:
        seconds = line.get("seconds", line.get("over"))
        if seconds is not None:
            out[line["case"]["table"], line["case"]["side"]] = seconds
    return out


def ordered(lines, limit, jobs):
    """Jobs (split, side, table) to the seconds that they may take, the quick ones first."""
    kept = measured(lines)
    cost = {job: estimate(kept, limit, job[2], job[1]) for job in jobs}
    ranks = [{value: k for k, value in enumerate(dict.fromkeys(job[at] for job in jobs))} for at in (0, 1)]
    key = {job: (tier(cost[job]), ranks[0][job[0]], ranks[1][job[1]], SIZES[job[2]][0]) for job in jobs}
    return {job: cost[job] for job in sorted(jobs, key=key.get)}
