# SPDX-License-Identifier: Apache-2.0
#
# What docs/how-to/cmake.md shows of the shell for a prefix: `install` in a clone, `use` in the
# folder of a program. PREFIX is the prefix.
# [begin install]
cmake -S . -B build/prefix -DUSM_DLPACK_BUILD_TESTS=OFF -DUSM_DLPACK_INSTALL_THIRD_PARTY=ON
cmake --install build/prefix --prefix "$PREFIX"
# [end install]
# [begin use]
cmake -S . -B build -DCMAKE_PREFIX_PATH="$PREFIX"
cmake --build build
# [end use]
