# SPDX-License-Identifier: Apache-2.0
#
# Defines the target `usm_dlpack::sycl_runtime`: DPC++'s SYCL headers and libsycl, for host code.
# The library itself asks for none, because who uses it may have a SYCL of their own. In this order:
# what the user points to, icpx itself, the wheel intel-sycl-rt of the environment that this file is
# installed in, that of the Python environment.
#
# Also defines `usm_dlpack_find_libsycl_from(<target>...)`, for Python extensions.

include("${CMAKE_CURRENT_LIST_DIR}/third_party_header.cmake")

set(USM_DLPACK_SYCL_INCLUDE_DIR "" CACHE PATH "Folder that holds sycl/sycl.hpp")
set(USM_DLPACK_SYCL_LIBRARY "" CACHE FILEPATH "DPC++'s libsycl.so")

# The path of one file of an installed wheel, which works in a virtual environment and in pip's
# isolated build alike.
function(usm_dlpack_find_in_wheel result wheel suffix)
  usm_dlpack_ask_python(path "
import importlib.metadata, os
files = importlib.metadata.files('${wheel}')
print(os.path.abspath(next(f for f in files if f.as_posix().endswith('${suffix}')).locate()))")
  set(${result} "${path}" PARENT_SCOPE)
endfunction()

# Makes extensions load libsycl from the environment that they are installed in, wherever that is:
# the runtime's wheel puts it two folders above site-packages. A top-level module, one in a package
# and one in a package within it each find it first at the depth that is theirs.
function(usm_dlpack_find_libsycl_from)
  if(NOT ARGN)
    message(FATAL_ERROR "usm_dlpack_find_libsycl_from: expected targets, found none; "
      "pass the target of your extension")
  endif()
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      message(FATAL_ERROR "usm_dlpack_find_libsycl_from: expected a target, found ${target}, which "
        "is none; call it after nanobind_add_module")
    endif()
    set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH
      "$ORIGIN/../.." "$ORIGIN/../../.." "$ORIGIN/../../../..")
  endforeach()
endfunction()

if(NOT TARGET usm_dlpack::sycl_runtime)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "IntelLLVM"
      AND NOT USM_DLPACK_SYCL_INCLUDE_DIR AND NOT USM_DLPACK_SYCL_LIBRARY)
    add_library(usm_dlpack::sycl_runtime INTERFACE IMPORTED GLOBAL)
    target_compile_options(usm_dlpack::sycl_runtime INTERFACE -fsycl)
    target_link_options(usm_dlpack::sycl_runtime INTERFACE -fsycl)
  else()
    set(usm_dlpack_include "${USM_DLPACK_SYCL_INCLUDE_DIR}")
    set(usm_dlpack_library "${USM_DLPACK_SYCL_LIBRARY}")
    get_filename_component(usm_dlpack_prefix
      "${CMAKE_CURRENT_LIST_DIR}/../../../../../../.." ABSOLUTE)
    if(NOT usm_dlpack_include AND NOT usm_dlpack_library
        AND EXISTS "${usm_dlpack_prefix}/include/sycl/sycl.hpp"
        AND EXISTS "${usm_dlpack_prefix}/lib/libsycl.so")
      set(usm_dlpack_include "${usm_dlpack_prefix}/include")
      set(usm_dlpack_library "${usm_dlpack_prefix}/lib/libsycl.so")
    endif()
    if(NOT usm_dlpack_include)
      usm_dlpack_find_in_wheel(usm_dlpack_include intel-sycl-rt /include/sycl/sycl.hpp)
      string(REGEX REPLACE "/sycl/sycl.hpp$" "" usm_dlpack_include "${usm_dlpack_include}")
    endif()
    if(NOT usm_dlpack_library)
      usm_dlpack_find_in_wheel(usm_dlpack_library intel-sycl-rt /libsycl.so)
    endif()
    if(EXISTS "${usm_dlpack_include}/sycl/sycl.hpp" AND EXISTS "${usm_dlpack_library}")
      message(STATUS "SYCL: ${usm_dlpack_include} ${usm_dlpack_library}")
      add_library(usm_dlpack::sycl_runtime INTERFACE IMPORTED GLOBAL)
      target_include_directories(usm_dlpack::sycl_runtime SYSTEM INTERFACE "${usm_dlpack_include}")
      target_link_libraries(usm_dlpack::sycl_runtime INTERFACE "${usm_dlpack_library}")
      # Without -fsycl the header warns that it is meant for -fsycl; host code is all that is built
      # here.
      target_compile_definitions(usm_dlpack::sycl_runtime
        INTERFACE SYCL_DISABLE_FSYCL_SYCLHPP_WARNING)
    else()
      usm_dlpack_installation(usm_dlpack_remedy "intel-sycl-rt")
      message(${usm_dlpack_severity} "sycl/sycl.hpp: expected DPC++'s headers and libsycl.so, "
        "found headers \"${usm_dlpack_include}\" and library \"${usm_dlpack_library}\"; "
        "${usm_dlpack_remedy}, "
        "or set -DUSM_DLPACK_SYCL_INCLUDE_DIR=<folder> and -DUSM_DLPACK_SYCL_LIBRARY=<file>, "
        "or use icpx as the compiler")
    endif()
  endif()
endif()
