# SPDX-License-Identifier: Apache-2.0
"""Tell how many faults in the headers the C++ suite catches.

Faults are generated over every comparison, arithmetic operator, boolean condition and throw of
``include/usm_dlpack/``, and each is tried with the suite (see faults.py, schema.py and trials.py).
A survivor either changes no behaviour, for a reason that survivors.toml gives, or a test is
missing. ``python3 dev.py mutation`` runs this program, which ends with status 1 where fewer than
95 % of the faults that change behaviour are caught, or where survivors.toml names a fault that is
not there or is caught.
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

from survivors import Entry, read_entries, reasons_for, stale_lines
from trials import HERE, ROOT, RefusalError, Suite, Verdict

REQUIRED = 95.0


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


def try_faults(
    suite: Suite, chosen: set[int], listed: set[int], *, quick: bool, trust: bool
) -> dict[int, Verdict]:
    """Try each fault the cheap way, then what survives, or cannot be tried so, by compilation.

    Of those that survivors.toml lists, most survive, and to compile all tests for each takes long:
    they are tried with the static tests and the tests of their header, or, where the list is
    trusted, not compiled.
    """
    switched = sorted(chosen & suite.switched)
    verdicts = try_all(suite, switched, suite.try_switched, "switched on")
    if quick:
        return verdicts
    # What the cases come to was run; what the static tests compute was not.
    constant = {n for n, v in verdicts.items() if not v.caught and suite.faults[n].constant}
    trusted = listed if trust else set()
    survived = sorted(constant - trusted)

    def again(number: int) -> Verdict:
        never = verdicts[number].by == "never reached" and number not in listed
        verdict = suite.try_alone(number, "all" if never else "none")
        return verdict if verdict.outcome != "survived" else verdicts[number]

    verdicts |= try_all(suite, survived, again, "compiled, survivors")
    alone = sorted(chosen - suite.switched - trusted)
    return verdicts | try_all(
        suite,
        alone,
        lambda n: suite.try_alone(n, "alike" if n in listed else "all"),
        "compiled, others",
    )


def by_what(verdict: Verdict) -> str:
    """Return the kind of test that catches a fault."""
    if not verdict.caught:
        return verdict.outcome
    kinds = ("static_assert", "the compiler", "compile_fail", "core_tests", "sycl_tests")
    return next(kind for kind in kinds if verdict.by.startswith(kind))


def table(suite: Suite, verdicts: dict[int, Verdict], reasons: dict[int, str]) -> list[str]:
    """One line a header: generated, caught, equivalent, survived."""
    lines = [f"{'header':24}{'faults':>8}{'caught':>8}{'same':>8}{'survived':>10}"]
    for header in [*suite.sources, "all"]:
        mine = {
            n: v
            for n, v in verdicts.items()
            if header in ("all", suite.faults[n].header) and v.outcome != "no program"
        }
        caught = sum(v.caught for v in mine.values())
        same = sum(n in reasons and not v.caught for n, v in mine.items())
        if mine:
            left = len(mine) - caught - same
            lines.append(f"{header:24}{len(mine):8}{caught:8}{same:8}{left:10}")
    return lines


def report(suite: Suite, verdicts: dict[int, Verdict], entries: list[Entry]) -> int:
    """Print what became of the faults, and return the exit status."""
    reasons = reasons_for(suite.faults, entries, same=True)
    beyond = reasons_for(suite.faults, entries, same=False)
    survived = {n for n, v in verdicts.items() if v.outcome == "survived"}
    stale = stale_lines(suite.faults, entries, survived, set(verdicts))
    equivalent = sorted(survived & set(reasons))
    missed = sorted(survived - set(reasons))
    caught = sum(v.caught for v in verdicts.values())
    none = sum(v.outcome == "no program" for v in verdicts.values())
    print("\nsurvivors that change no behaviour, by survivors.toml:")
    for number in equivalent:
        print(f"  {suite.faults[number]}\n      {reasons[number]}")
    print("\nsurvivors that no test can be had of here, by survivors.toml:")
    for number in (n for n in missed if n in beyond):
        print(f"  {suite.faults[number]}\n      {beyond[number]}")
    print("\nsurvivors without a reason:")
    for number in (n for n in missed if n not in beyond):
        seen = f" ({verdicts[number].by})" if verdicts[number].by else ""
        print(f"  {suite.faults[number].kind:10} {suite.faults[number]}{seen}")
    for line in stale:
        print(f"survivors.toml: {line}; correct the list")
    print("\ncaught by: ", end="")
    kinds = Counter(by_what(v) for v in verdicts.values() if v.caught)
    print(", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
    print("\n".join(table(suite, verdicts, reasons)))
    changing = caught + len(missed)
    percentage = 100.0 * caught / changing if changing else 100.0
    print(f"\n{len(verdicts)} faults generated, {none} of them no program (not even alone)")
    print(f"{caught} caught, {len(equivalent)} change no behaviour, {len(missed)} survived,")
    print(f"{len(set(missed) - set(beyond))} of these without a reason")
    print(f"{percentage:.2f} % of those that change behaviour are caught, {REQUIRED:g} % required")
    for case in suite.failing:
        print(f"{case}: expected to pass without a fault, found that it fails; mend it first")
    return 1 if stale or suite.failing or percentage < REQUIRED else 0


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
    parser.add_argument("--trust", action="store_true", help="do not compile survivors.toml's")
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
        entries = read_entries(HERE / "survivors.toml")
        if options.report:
            return report(suite, kept_verdicts(results, suite), entries)
        listed = {
            n for same in (True, False) for n in reasons_for(suite.faults, entries, same=same)
        }
        start = time.monotonic()
        suite.prepare(chosen)
        print(f"{len(suite.faults)} faults, {len(suite.switched)} switched at run time", flush=True)
        verdicts = try_faults(suite, chosen, listed, quick=options.quick, trust=options.trust)
        status = report(suite, verdicts, entries)
        print(f"{(time.monotonic() - start) / 60:.0f} minutes")
        return status
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
