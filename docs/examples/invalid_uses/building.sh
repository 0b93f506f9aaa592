# SPDX-License-Identifier: Apache-2.0
#
# Invalid uses of the build, one for each argument. SOURCE is the source tree, PACKAGE the folder of
# the installed CMake package, INCLUDE that of the installed headers.
set -u
mkdir -p old/dlpack old/mdspan

case "$1" in
  header_that_is_nowhere)
    python3 -m venv --without-pip bare # an environment without any package
    cmake -S "$SOURCE" -B build -DPython_EXECUTABLE="$PWD/bare/bin/python"
    ;;
  older_dlpack)
    echo "#define DLPACK_VERSION 60" >old/dlpack/dlpack.h
    cmake -S "$SOURCE" -B build -DUSM_DLPACK_DLPACK_INCLUDE_DIR="$PWD/old"
    ;;
  mdspan_of_a_fixed_namespace)
    echo "namespace std::experimental {}" >old/mdspan/mdspan.hpp
    cmake -S "$SOURCE/docs/examples/invalid_uses" -B build -Dusm_dlpack_DIR="$PACKAGE" \
      -DUSM_DLPACK_MDSPAN_INCLUDE_DIR="$PWD/old"
    ;;
  unknown_component)
    echo "cmake_minimum_required(VERSION 3.25)" >CMakeLists.txt
    echo "project(user LANGUAGES CXX)" >>CMakeLists.txt
    echo "find_package(usm_dlpack REQUIRED COMPONENTS mdspn)" >>CMakeLists.txt
    cmake -S . -B build -Dusm_dlpack_DIR="$PACKAGE"
    ;;
  extension_without_its_target)
    echo "cmake_minimum_required(VERSION 3.25)" >CMakeLists.txt
    echo "project(user LANGUAGES CXX)" >>CMakeLists.txt
    echo "find_package(usm_dlpack REQUIRED COMPONENTS sycl)" >>CMakeLists.txt
    echo "usm_dlpack_find_libsycl_from()" >>CMakeLists.txt
    cmake -S . -B build -Dusm_dlpack_DIR="$PACKAGE"
    ;;
  extension_with_another_target)
    echo "cmake_minimum_required(VERSION 3.25)" >CMakeLists.txt
    echo "project(user LANGUAGES CXX)" >>CMakeLists.txt
    echo "find_package(usm_dlpack REQUIRED COMPONENTS sycl)" >>CMakeLists.txt
    echo "usm_dlpack_find_libsycl_from(mien)" >>CMakeLists.txt
    cmake -S . -B build -Dusm_dlpack_DIR="$PACKAGE"
    ;;
  interpreter_that_is_nowhere)
    cmake -S "$SOURCE" -B build -DPython_EXECUTABLE="$PWD/bare/bin/pyhton"
    ;;
  sycl_that_is_nowhere)
    cmake -S "$SOURCE/docs/examples/invalid_uses" -B build -Dusm_dlpack_DIR="$PACKAGE" \
      -DUSM_DLPACK_SYCL_INCLUDE_DIR="$PWD/old" -DUSM_DLPACK_SYCL_LIBRARY="$PWD/old/libsycl.so"
    ;;
  compiler_without_dlpack)
    echo "#include <usm_dlpack/core.hpp>" >program.cpp
    g++ -std=c++17 -fsyntax-only -I"$INCLUDE" program.cpp
    ;;
  compiler_with_older_dlpack)
    echo "#define DLPACK_VERSION 60" >old/dlpack/dlpack.h
    echo "#include <usm_dlpack/core.hpp>" >program.cpp
    g++ -std=c++17 -fsyntax-only -I"$INCLUDE" -Iold program.cpp
    ;;
  older_dlpack_included_first)
    echo "#define DLPACK_DLPACK_H_" >old/dlpack/dlpack.h
    echo "#include <dlpack/dlpack.h> // as in another library's header" >program.cpp
    echo "#include <usm_dlpack/core.hpp>" >>program.cpp
    g++ -std=c++17 -fsyntax-only -I"$INCLUDE" -Iold program.cpp
    ;;
  compiler_with_dlpack_2)
    echo "#define DLPACK_MAJOR_VERSION 2" >old/dlpack/dlpack.h
    echo "#include <usm_dlpack/core.hpp>" >program.cpp
    g++ -std=c++17 -fsyntax-only -I"$INCLUDE" -Iold program.cpp
    ;;
  another_sycl)
    # AdaptiveCpp and others: a SYCL that has no default contexts.
    mkdir -p other/sycl
    echo "#define SYCL_LANGUAGE_VERSION 202012L" >other/sycl/sycl.hpp
    echo "#include <sycl/sycl.hpp>" >program.cpp
    echo "#include <usm_dlpack/sycl/config.hpp>" >>program.cpp
    g++ -std=c++17 -fsyntax-only -I"$INCLUDE" -Iother program.cpp
    ;;
esac
