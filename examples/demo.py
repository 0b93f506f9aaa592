# SPDX-License-Identifier: Apache-2.0
"""Install the package with the CPU driver, and draw the picture of the tutorial.

``python3 dev.py demo`` runs this program.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dev import RefusalError, copy_python_files, is_built, prepare, run  # noqa: E402

# What builds a user's extension without isolation.
FOR_EXTENSION = ["cmake", "ninja", "nanobind>=3.1", "scikit-build-core>=1.1"]


def demo() -> int:
    """Prepare ``.dev/venv`` as a user would, and run the program of the tutorial in it."""
    print("1 of 3: a virtual environment in .dev/venv", flush=True)
    environment = prepare()
    print(
        "2 of 3: pip downloads what is not there, up to 900 MB (the SYCL runtime, the CPU driver, "
        "dpnp), unpacks 3.2 GB to .dev/venv, and compiles the module and the tutorial's extension: "
        "some minutes",
        flush=True,
    )
    package = "usm-dlpack[cpu,demo]" if is_built(environment) else ".[cpu,demo]"
    environment.install(package, *FOR_EXTENSION)
    copy_python_files(environment)
    environment.install("--no-build-isolation", "./examples/extension")
    print("3 of 3: a kernel on dpnp's arrays, on a SYCL device: docs/examples/heat.py", flush=True)
    folder = ROOT / "build" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    program = ROOT / "docs" / "examples" / "heat.py"
    status = run(
        environment.python, program, environment=environment.variables, folder=folder, check=False
    )
    if status == 0:
        print(
            f"\nThe picture is {(folder / 'heat.png').relative_to(ROOT)}. Next: run "
            f"`. {environment.folder.relative_to(ROOT)}/bin/activate`, and follow "
            "docs/tutorial.md, which ends with this program; for C++, docs/how-to/cmake.md"
        )
    return status


def main() -> int:
    """Run the demonstration, or say in a sentence why it cannot go on."""
    argparse.ArgumentParser(prog="dev.py demo", description=__doc__).parse_args()
    try:
        return demo()
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
