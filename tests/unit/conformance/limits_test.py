"""The kit holds a provider to each limit it states: results at the limit pass, results one step beyond it fail.

Usage: limits_test.py SOURCE_ROOT MIRROR_LIBRARY TENON_CONFORM

The mirror computes by the reference. Its setting `off` moves every result to the last value that a tolerance allows, or
one step further. This file states the tolerances again, so that a loosened one is noticed. Those of a single prelude
function follow from the contract: the bounds in ep_api/accuracy.def, and one step for the rounding of the reference. The
others repeat what the kit means. (ULPS, EPSILONS, TINY) as in tests/cases/case.h; a fourth number is the greatest magnitude
that a result may have. On the lower tiers four more follow, as in tests/fakes/mirror/precision.h: (UNITS, PER_X, ABSOLUTE,
ROUNDING), of the row of accuracy.def. The mirror then states the tier.
"""
import collections
import json
import math
import os
import re
import subprocess
import sys

BOUND = re.compile(r"^EP_ACCURACY\((\w+), +([\d.]+),", re.MULTILINE)
NEAR_ROOTS = re.compile(r"^EP_FLOAT_FUNCTION\((\w+),.* (\d+)\)$", re.MULTILINE)
MOST = re.compile(r"^//   (ep_\w+) +magnitude at most (\d+);", re.MULTILINE)
NUMBERS = re.compile(r"^EP_ACCURACY\((\w+),((?: +[\d.]+,){7}) +(.*)\)$", re.MULTILINE)
ROW = re.compile(r"^EP_UNARY\((\w+), +\d+, (\w+), +(\w+), (.*)\)$", re.MULTILINE)
CALL = re.compile(r"^(ep_\w+)\(x\)$")
WRONG = re.compile(r"\((\d+) elements? differs?(?: by up to \d+ ulp)?; ")
EXACT = (0, 0, 0)
# The other floating dtypes. f64 is compared with functions of its own precision; a narrow one is rounded once. The steps
# of f8e4m3fn end in NaN, which is not a step beyond: distance_test.cpp moves its values.
OTHER_FLOATS = {"f64": lambda ulps: 2 * ulps, "f16": lambda ulps: min(ulps, 1), "bf16": lambda ulps: min(ulps, 1),
                "f8e5m2": lambda ulps: min(ulps, 1)}

# Scalar functions of several prelude functions: the sum of the parts' bounds, and epsilons for those that cancel.
COMPOSITE = {
    "rsqrt": (2, 0, 0), "sigmoid": (8, 0, 1), "silu": (8, 0, 128), "gelu": (8, 32, 0), "gelu_tanh": (8, 64, 0),
    "softplus": (10, 0, 1), "softsign": (2, 0, 0), "mish": (16, 0, 128), "elu": (6, 0, 0), "celu": (8, 0, 0),
    "selu": (8, 0, 0), "hard_sigmoid": (1, 4, 0), "hard_swish": (2, 16, 0), "log_sigmoid": (10, 0, 1),
    "sinc": (8, 4, 0), "tanhshrink": (8, 8, 0)}
# exp, exp2, expm1 and erfc may flush results below the least normal number.
TINY = {"exp": 1, "exp2": 1, "expm1": 1, "erfc": 1}

OTHERS = {
    "unary/gelu/f16/special": (1, 32, 0), "unary/exp/f64/special": (10, 0, 1), "unary/sin/f64/special": (10, 0, 0),
    "binary/add/f32/vector": EXACT, "binary/div/f32/vector": EXACT, "binary/add/i32/vector": EXACT,
    "binary/lt/f32/vector": EXACT, "binary/pow/f32/vector": (17, 0, 0), "ternary/where/f32/vector": EXACT,
    "ternary/clamp/f32/vector": EXACT, "ternary/fma/f32/vector": (1, 8, 0), "ternary/fma/f64/special": (2, 8, 0),
    "reduce/sum/f32/last": (0, 2 * 5, 0), "reduce/sum/f32/wide_rows": (0, 2 * 4099, 0),
    "reduce/sum/f32/last_of_uneven_parts": EXACT, "reduce/sum/f16/last": (1, 2 * 5, 0),
    "reduce/sum/f64/last": (0, 2 * 5, 0), "reduce/sum/i32/last": EXACT, "reduce/mean/f32/last": (1, 2, 0),
    "reduce/max/f32/last": EXACT, "reduce/min/f16/last": EXACT, "reduce/log_sum/f32/last": (5, 4 + 5 / 8, 0),
    "reduce/prod/f32/last": (9, 0, 1), "reduce/l1_norm/f32/last": (9, 0, 1), "reduce/l2_norm/f32/last": (9, 0, 1),
    "reduce/sum_square/f32/last": (9, 0, 1), "reduce/any/bool/mixed": EXACT, "arg_reduce/max/f32/wide": EXACT,
    "softmax/plain/f32/rows": (40 + 197 / 16, 0, 1), "softmax/log/f32/rows": (4, 32 + 197 / 256, 0),
    "softmax/plain/f16/last": (1, 0, 1), "softmax/log/bf16/last": (1, 32 + 5 / 256, 0),
    "matmul/f32/ragged": (2, 131 + 2, 0), "matmul/f16/odd": (1, 3 + 2, 0), "matmul/f64/odd": (2, 3 + 2, 0),
    "matmul/f32/epilogue_gelu": (2, 2 * (65 + 2), 0), "matmul/i8_to_i32/odd": EXACT,
    "convolution/f32/3x3": (2, 5 * 9 + 2, 0), "convolution/f32/depthwise": (2, 9 + 2, 0),
    "convolution/f16/3x3": (1, 5 * 9 + 2, 0),
    "pooling/max/f32/3x3_stride_2": EXACT, "pooling/max_indices/f32/3x3_stride_2": EXACT,
    "pooling/average/f32/3x3_stride_2": (2, 64, 0), "pooling/average/bf16/3x3_stride_2": (1, 64, 0),
    "layer_norm/affine/f32/last": (8, 64, 0), "layer_norm/affine/f16/last": (1, 64, 0),
    "batch_norm/plain/f32/images": (8, 64, 0), "copy/f32_to_f16/special": EXACT, "gather/slices/f32/rows_i64": EXACT,
    "concat/2/f32/*": EXACT, "split/2/f32/*": EXACT, "pad/*/f32/*": EXACT,
}


# The errors of the functions of these kinds on tiers portable and relaxed are added to their tolerances.
OTHERS_BY_TIER = {
    "portable": {
        "matmul/f32/ragged": (2, 131 * 1.5 + 2, 0), "matmul/f64/odd": (2, 3 * 1.5 + 2, 0), "matmul/f16/odd": (1, 3 * 1.5 + 2, 0),
        "convolution/f32/depthwise": (2, 9 * 1.5 + 2, 0), "pooling/average/f32/3x3_stride_2": (4, 80, 0),
        "layer_norm/affine/f32/last": (14, 112, 0), "batch_norm/plain/f32/images": (14, 112, 0),
        "softmax/plain/f32/rows": (106 + 197 / 16, 0, 1), "softmax/log/f32/rows": (4, 68 + 197 / 256, 0),
        "softmax/plain/f64/last": (40 + 5 / 16, 0, 1), "reduce/mean/f32/last": (3, 2, 0), "reduce/l2_norm/f32/last": (13, 0, 1),
        "reduce/max/f32/last": EXACT, "binary/lt/f32/vector": EXACT, "copy/f32_to_f16/special": EXACT,
        "gather/slices/f32/rows_i64": EXACT, "unary/relu/f32/vector": EXACT, "binary/maximum/f32/vector": EXACT,
    },
    "relaxed": {
        "matmul/f32/ragged": (2, 131 * 32768.5 + 2, 0), "convolution/f32/depthwise": (2, 9 * 32768.5 + 2, 0),
        "layer_norm/affine/f32/last": (8 + 16383, 64 + 8 * 16383, 0), "reduce/mean/f32/last": (8192.5, 2, 0),
        "reduce/max/f32/last": EXACT, "unary/neg/f32/vector": EXACT, "ternary/where/f32/vector": EXACT,
    },
}


def tier_cases(text, accuracy, tier):
    """The limit of the scalar functions that are one row without an inherited formula, on f32 and f64."""
    rows = {name: (list(map(float, numbers.replace(",", " ").split())), inherited)
            for name, numbers, inherited in NUMBERS.findall(accuracy)}
    cases = {}
    for name, domain, result, expression in ROW.findall(text):
        call = CALL.match(expression)
        row, inherited = rows.get(call.group(1)[3:] if call else "", (None, ""))
        # Beyond pi the kit demands nothing of sin, cos and tan. What lgamma and digamma lose at their roots is not measured in ulp.
        if row is None or inherited != "NONE" or name in ("sin", "cos", "lgamma", "digamma"):
            continue
        full, portable, per_x, absolute, portable_f64, relaxed, relaxed_absolute = row
        ulps = full + 1 if full >= 1 else 0
        tiny = TINY.get(name, 0)
        if tier == "relaxed":
            narrow, wide = (relaxed, 0, max(relaxed_absolute, absolute), 1), (2 * relaxed, 0, 2 * relaxed_absolute, 2)
        else:
            narrow, wide = (portable, per_x, absolute, 1), (2 * portable_f64, 0, 0, 2)
        cases[f"unary/{name}/f32/vector"] = (ulps, 0, tiny, 0, *narrow)
        # The mirror moves -0 to a negative number, which no root is, and moves by epsilons in double precision.
        if name != "sqrt" and wide[2] == 0:
            cases[f"unary/{name}/f64/special"] = (2 * ulps, 0, tiny, 0, *wide)
    return cases


def prelude_bounds(accuracy):
    """The ulps that tier full allows each function of the prelude."""
    return {"ep_" + name: float(bound) for name, bound in BOUND.findall(accuracy)}


def unary_limits(text, accuracy):
    """The f32 limit of every scalar function on floats, by the contract or COMPOSITE."""
    bounds, most, limits = prelude_bounds(accuracy), dict(MOST.findall(text)), {}
    near_roots = {"ep_" + name: float(epsilons) for name, epsilons in NEAR_ROOTS.findall(accuracy)}
    for name, domain, result, expression in ROW.findall(text):
        if domain not in ("FLOAT", "SIGNED", "NUMERIC", "ANY"):
            continue
        call = CALL.match(expression)
        bound = bounds.get(call.group(1), 0) if call else 0
        own = (bound + 1, near_roots.get(call.group(1), 0), TINY.get(name, 0)) if bound >= 1 else EXACT
        limits[name] = COMPOSITE.get(name, own)
        if call and call.group(1) in most:
            limits[name] += (float(most[call.group(1)]),)
    return limits


def unary_cases(text, accuracy):
    """The limit of one case of every scalar function, for every floating dtype."""
    cases = {}
    for name, (ulps, *rest) in unary_limits(text, accuracy).items():
        cases[f"unary/{name}/f32/vector"] = (ulps, *rest)
        for dtype, ulps_of in OTHER_FLOATS.items():
            cases[f"unary/{name}/{dtype}/special"] = (ulps_of(ulps), *rest)
    return cases


def wrong_elements(sentence):
    """The number of elements that the kit finds too far from the reference."""
    found = WRONG.search(sentence)
    return int(found.group(1)) if found and "(rule P14)" in sentence else 0


class Test:
    def __init__(self, root, library, kit):
        self.library, self.kit, self.failures, self.checks = library, kit, [], 0
        texts = [open(os.path.join(root, "ep_api", name)).read() for name in ("scalar_ops.def", "accuracy.def")]
        self.limits = {"full": unary_cases(*texts)}
        self.limits["full"].update(OTHERS)
        for tier, others in OTHERS_BY_TIER.items():
            self.limits[tier] = {**tier_cases(*texts, tier), **others}

    def outcomes(self, tier, direction, limit, cases):
        settings = ["--set", "mode=" + tier, "--set", "off=" + ",".join([direction, *map(repr, map(float, limit))])]
        chosen = [word for case in cases for word in ("--case", "primitives/" + case)]
        result = subprocess.run([self.kit, self.library, "--json", "-", *settings, *chosen], capture_output=True, text=True)
        try:
            tests = json.loads(result.stdout)["tests"]
        except (ValueError, KeyError):
            sys.exit(f"the kit ended with {result.returncode}: {result.stdout} {result.stderr}")
        return [(test["name"], test["outcome"], test["sentence"]) for test in tests]

    def run(self):
        groups = collections.defaultdict(list)
        for tier, limits in self.limits.items():
            for case, limit in limits.items():
                groups[tier, limit].append(case)
        for (tier, limit), cases in sorted(groups.items()):
            self.hold(tier, limit, cases)

    def hold(self, tier, limit, cases):
        """At the limit no element is wrong; one step beyond it all are that two steps further on are."""
        further = (limit[0] + 2, limit[1] * 1.5, limit[2] * 1.5, *limit[3:4], *(number * 1.5 for number in limit[4:]))
        runs = [self.outcomes(tier, "within", limit, cases), self.outcomes(tier, "beyond", limit, cases),
                self.outcomes(tier, "beyond", further, cases)]
        if len(runs[0]) < len(cases):
            self.failures.append(f"{len(cases)} cases were asked for, the kit ran {len(runs[0])}: {cases}")
        for within, beyond, far in zip(*runs):
            name, outcome, sentence = within
            self.expect(outcome == "passed", f"{name} is refused at its limit {limit} on tier {tier}: {sentence}")
            wrong, all_wrong = wrong_elements(beyond[2]), wrong_elements(far[2])
            self.expect(wrong > 0 and wrong == all_wrong, f"{name}: one step beyond its limit {limit} on tier {tier} {wrong} elements are "
                        f"refused, further on {all_wrong}: {beyond[2]}")

    def expect(self, condition, sentence):
        self.checks += 1
        if not condition:
            self.failures.append(sentence)


def main():
    test = Test(*sys.argv[1:4])
    test.run()
    for failure in test.failures:
        print("FAILED", failure)
    print(f"{sum(map(len, test.limits.values()))} limits, {test.checks} checks, {len(test.failures)} failed")
    return 1 if test.failures or not test.checks else 0


if __name__ == "__main__":
    sys.exit(main())
