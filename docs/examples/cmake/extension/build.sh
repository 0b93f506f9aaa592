# SPDX-License-Identifier: Apache-2.0
#
# What docs/how-to/cmake.md shows of the shell for an extension, in this folder.
# [begin build]
python -m pip install "nanobind>=3.1"
cmake -S . -B build -Dnanobind_DIR=$(python -m nanobind --cmake_dir) \
  -Dusm_dlpack_DIR=$(python -c "import usm_dlpack; print(usm_dlpack.get_cmake_dir())")
cmake --build build
# [end build]
