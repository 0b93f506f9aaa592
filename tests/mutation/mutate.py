# SPDX-License-Identifier: Apache-2.0
"""Print the faults in the headers that no C++ test catches.

Faults are generated over every comparison, arithmetic operator, boolean condition and throw of
``include/usm_dlpack/``, and each is tried with the suite (see faults.py, schema.py and trials.py).
A survivor either changes no behaviour, or a test is missing. ``python3 dev.py mutation`` runs this
program; somebody reads what it prints.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trials import ROOT, RefusalError, Suite, Verdict


def try_all(
    suite: Suite, numbers: Iterable[int], attempt: Callable[[int], Verdict], what: str
) -> dict[int, Verdict]:
    """Try faults, some at once; say how far it is, and keep what is known so far."""
    chosen = list(numbers)
    verdicts: dict[int, Verdict] = {}
    start = time.monotonic()
    print(f"{what}: {len(chosen)} to try", flush=True)
    with ThreadPoolExecutor(suite.jobs) as pool:
        for number, verdict in zip(chosen, pool.map(attempt, chosen), strict=True):
            verdicts[number] = verdict
            if len(verdicts) % 20 == 0 or len(verdicts) == len(chosen):
                save(suite.folder / "results.json", suite, verdicts)
            if len(verdicts) % 100 == 0 or len(verdicts) == len(chosen):
                minutes = (time.monotonic() - start) / 60
                print(f"{what}: {len(verdicts)} of {len(chosen)}, {minutes:.1f} min", flush=True)
    return verdicts


def try_faults(suite: Suite, chosen: set[int], *, quick: bool) -> dict[int, Verdict]:
    """Try each fault the cheap way, then what survives, or cannot be tried so, by compilation."""
    switched = sorted(chosen & suite.switched)
    verdicts = try_all(suite, switched, suite.try_switched, "switched on")
    if quick:
        return verdicts
    # What the cases come to was run; what the static tests compute was not.
    survived = sorted(n for n, v in verdicts.items() if not v.caught and suite.faults[n].constant)

    def again(number: int) -> Verdict:
        never = verdicts[number].by == "never reached"
        verdict = suite.try_alone(number, units=never)
        return verdict if verdict.outcome != "survived" else verdicts[number]

    verdicts |= try_all(suite, survived, again, "compiled, survivors")
    alone = sorted(chosen - suite.switched)
    return verdicts | try_all(
        suite, alone, lambda n: suite.try_alone(n, units=True), "compiled, others"
    )


def by_what(verdict: Verdict) -> str:
    """Return the kind of test that catches a fault."""
    if not verdict.caught:
        return verdict.outcome
    kinds = ("static_assert", "the compiler", "compile_fail", "core_tests", "sycl_tests")
    return next(kind for kind in kinds if verdict.by.startswith(kind))


def table(suite: Suite, verdicts: dict[int, Verdict]) -> list[str]:
    """One line a header: generated, caught, survived."""
    lines = [f"{'header':24}{'faults':>8}{'caught':>8}{'survived':>10}"]
    for header in [*suite.sources, "all"]:
        mine = {
            n: v
            for n, v in verdicts.items()
            if header in ("all", suite.faults[n].header) and v.outcome != "no program"
        }
        caught = sum(v.caught for v in mine.values())
        if mine:
            lines.append(f"{header:24}{len(mine):8}{caught:8}{len(mine) - caught:10}")
    return lines


def report(suite: Suite, verdicts: dict[int, Verdict]) -> int:
    """Print what became of the faults; return 1 if a test fails without one."""
    survived = sorted(n for n, v in verdicts.items() if v.outcome == "survived")
    caught = sum(v.caught for v in verdicts.values())
    none = sum(v.outcome == "no program" for v in verdicts.values())
    print("\nsurvivors:")
    for number in survived:
        seen = f" ({verdicts[number].by})" if verdicts[number].by else ""
        print(f"  {suite.faults[number].kind:10} {suite.faults[number]}{seen}")
    print("\ncaught by: ", end="")
    kinds = Counter(by_what(v) for v in verdicts.values() if v.caught)
    print(", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
    print("\n".join(table(suite, verdicts)))
    print(f"\n{len(verdicts)} faults generated, {none} of them no program (not even alone)")
    print(f"{caught} caught, {len(survived)} survived")
    for case in suite.failing:
        print(f"{case}: expected to pass without a fault, found that it fails; mend it first")
    return 1 if suite.failing else 0


def save(file: Path, suite: Suite, verdicts: dict[int, Verdict]) -> None:
    """Keep the verdicts of this run, and those of earlier runs on faults not tried now."""
    kept = {tuple(r["key"]): r for r in json.loads(file.read_text())} if file.exists() else {}
    for number, verdict in sorted(verdicts.items()):
        key = suite.faults[number].key
        kept[key] = {"key": list(key), "outcome": verdict.outcome, "by": verdict.by}
    present = {fault.key for fault in suite.faults.values()}
    file.write_text(json.dumps([r for key, r in kept.items() if key in present], indent=1))


def kept_verdicts(file: Path, suite: Suite) -> dict[int, Verdict]:
    """Return what earlier runs found, of faults that are still there."""
    records = json.loads(file.read_text()) if file.exists() else []
    found = {tuple(r["key"]): Verdict(r["outcome"], r["by"]) for r in records}
    return {n: found[fault.key] for n, fault in suite.faults.items() if fault.key in found}


def chosen_faults(suite: Suite, headers: list[str], file: Path, *, survivors: bool) -> set[int]:
    """Return the faults to try: all, those of some headers, those that survived the last run."""
    unknown = sorted(set(headers) - set(suite.sources))
    if unknown:
        raise RefusalError(
            f"--header: expected one of {', '.join(suite.sources)}, found {unknown[0]}; "
            "name a file of include/usm_dlpack"
        )
    chosen = {n for n, f in suite.faults.items() if not headers or f.header in headers}
    if survivors:
        records = json.loads(file.read_text()) if file.exists() else []
        done = {tuple(r["key"]) for r in records if r["outcome"] != "survived"}
        chosen = {n for n in chosen if suite.faults[n].key not in done}
    return chosen


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="dev.py mutation", description=__doc__)
    parser.add_argument("--header", action="append", default=[], help="only its faults; repeatable")
    parser.add_argument("--survivors", action="store_true", help="only those of the last run")
    parser.add_argument("--quick", action="store_true", help="leave out what must be compiled")
    parser.add_argument("--list", action="store_true", help="print the faults, and try none")
    parser.add_argument("--report", action="store_true", help="what earlier runs found, together")
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at once (default: 2)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "mutation")
    options = parser.parse_args()
    options.build.mkdir(parents=True, exist_ok=True)
    suite = Suite(options.build, options.jobs)
    results = options.build / "results.json"
    try:
        chosen = chosen_faults(suite, options.header, results, survivors=options.survivors)
        if options.list:
            print("\n".join(f"{suite.faults[n].kind:10} {suite.faults[n]}" for n in sorted(chosen)))
            return 0
        if options.report:
            return report(suite, kept_verdicts(results, suite))
        start = time.monotonic()
        suite.prepare(chosen)
        print(f"{len(suite.faults)} faults, {len(suite.switched)} switched at run time", flush=True)
        verdicts = try_faults(suite, chosen, quick=options.quick)
        status = report(suite, verdicts)
        print(f"{(time.monotonic() - start) / 60:.0f} minutes")
        return status
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
