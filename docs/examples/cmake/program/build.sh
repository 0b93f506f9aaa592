# SPDX-License-Identifier: Apache-2.0
#
# What docs/how-to/cmake.md shows of the shell for a program, in this folder.
# [begin build]
cmake -S . -B build -Dusm_dlpack_DIR=$(python -c "import usm_dlpack; print(usm_dlpack.get_cmake_dir())")
cmake --build build
# [end build]
# [begin run]
OCL_ICD_FILENAMES=$VIRTUAL_ENV/lib/libintelocl.so build/program
# [end run]
