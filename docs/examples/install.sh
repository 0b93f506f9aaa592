# SPDX-License-Identifier: Apache-2.0
#
# The commands of docs/how-to/install.md, which tests/packaging/ runs: WHEELS is a folder that has
# our wheel, PROJECT one of a project that requires usm-dlpack, also to build.
set -e
python -m pip install --find-links "$WHEELS" "usm-dlpack[cpu]"
cd "$PROJECT"
python -m pip install --find-links "$WHEELS" . "usm-dlpack[cpu]"
