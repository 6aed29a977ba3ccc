"""Prints results of scipy for random samples with a fixed seed, one case per line of JSON. The test
crates/seekwell-lab/tests/scipy compares the lab's results with them.

    python scripts/scipy_vectors.py > crates/seekwell-lab/tests/scipy/figures.json
"""

import json
import random

import numpy
from scipy import stats

dice = random.Random(7)


def sample(n, scatter=0.05):
    return [round(dice.lognormvariate(3.0, scatter), 6) for _ in range(n)]


def flat(*values):
    return [float(v) for v in values]


def distributions():
    for z in [-6.0, -1.3, 0.0, 0.7, 2.5]:
        yield "normal_cdf", [z], flat(stats.norm.cdf(z))
    for p in [1e-6, 0.025, 0.4, 0.975, 0.999]:
        yield "normal_quantile", [p], flat(stats.norm.ppf(p))
        for df in [1.0, 4.5, 9.0, 59.0, 4000.0]:
            yield "t_quantile", [p, df], flat(stats.t.ppf(p, df))
    for df in [1.0, 3.7, 9.0, 300.0]:
        for t in [0.0, -0.4, 2.1, 7.0, 30.0]:
            yield "t_tail2", [t, df], flat(2 * stats.t.sf(abs(t), df))
        for x in [0.1, 3.0, 25.0]:
            yield "f_tail", [x, df, 12.0], flat(stats.f.sf(x, df, 12.0))


def described(x):
    low, high = stats.t.interval(0.95, len(x) - 1, numpy.mean(x), stats.sem(x))
    return flat(numpy.mean(x), numpy.median(x), stats.tstd(x), stats.sem(x), low, high, stats.gmean(x))


def paired(x, y):
    t = stats.ttest_rel(numpy.log(x), numpy.log(y))
    wide, narrow = t.confidence_interval(0.95), t.confidence_interval(0.90)
    return flat(t.pvalue, wide.low, wide.high, narrow.low, narrow.high, t.df)


def welch(x, y):
    t = stats.ttest_ind(numpy.log(x), numpy.log(y), equal_var=False)
    ends = t.confidence_interval(0.95)
    return flat(t.pvalue, t.df, ends.low, ends.high)


def signed_rank(d):
    if len(d) <= 50:
        return flat(stats.wilcoxon(d, method="exact").pvalue)
    return flat(stats.wilcoxon(d, correction=True, method="asymptotic").pvalue)


def summary(x, y):
    of = [numpy.mean(x), stats.tstd(x), len(x), numpy.mean(y), stats.tstd(y), len(y)]
    t = stats.ttest_ind_from_stats(*of, equal_var=False)
    return flat(*of), flat(t.statistic, t.pvalue)


def samples():
    for n in [2, 3, 6, 10, 30, 80]:
        x, y = sample(n), sample(n, 0.08)
        yield "describe", [x], described(x)
        yield "paired", [x, y], paired(x, y)
        yield "welch", [x, y[: max(2, n // 2)]], welch(x, y[: max(2, n // 2)])
        inputs, told = summary(x, y)
        yield "welch_summary", [inputs], told
        d = [round(a - b, 6) for a, b in zip(x, y)]
        yield "signed_rank", [d], signed_rank(d)
        if n > 2:
            yield "theil_sen", [x], flat(stats.theilslopes(x).slope)
    for n in [4, 7, 10]:
        x = sample(n)
        tau = stats.kendalltau(range(n), x, method="exact")
        yield "mann_kendall", [x], flat(round(tau.statistic * n * (n - 1) / 2), tau.pvalue)


for family in [distributions(), samples()]:
    for name, given, told in family:
        print(json.dumps({"of": name, "in": given, "scipy": told}))
