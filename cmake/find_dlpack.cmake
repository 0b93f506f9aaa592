# SPDX-License-Identifier: Apache-2.0
#
# Defines the target `usm_dlpack::dlpack_header`: dlpack.h 1.x. Its version is read from the
# header's own text, because DLPack's CMake package says 0.6 for every release.
# USM_DLPACK_DLPACK_MINIMUM (default 1.0) raises what is accepted.

include("${CMAKE_CURRENT_LIST_DIR}/third_party_header.cmake")

function(usm_dlpack_check_dlpack result file)
  set(fault "")
  if(NOT EXISTS "${file}")
    set(fault "no such header")
  else()
    file(STRINGS "${file}" lines REGEX "^#define DLPACK_(MAJOR_|MINOR_)?VERSION +[0-9]+")
    if("${lines}" MATCHES "DLPACK_MAJOR_VERSION +([0-9]+)")
      set(version "${CMAKE_MATCH_1}")
      string(REGEX MATCH "DLPACK_MINOR_VERSION +([0-9]+)" line "${lines}")
      set(version "${version}.${CMAKE_MATCH_1}")
      if(version VERSION_LESS USM_DLPACK_DLPACK_MINIMUM OR version VERSION_GREATER_EQUAL 2)
        set(fault "version ${version}")
      endif()
    else()
      set(fault "a version older than 1.0")
    endif()
  endif()
  set(${result} "${fault}" PARENT_SCOPE)
endfunction()

if(NOT TARGET usm_dlpack::dlpack_header)
  if(NOT DEFINED USM_DLPACK_DLPACK_MINIMUM)
    set(USM_DLPACK_DLPACK_MINIMUM 1.0)
  endif()
  usm_dlpack_find_header(usm_dlpack_folder
    NAME dlpack
    HEADER dlpack/dlpack.h
    EXPECTED "dlpack.h ${USM_DLPACK_DLPACK_MINIMUM} or newer, before 2.0"
    CHECK usm_dlpack_check_dlpack
    TARGETS dlpack::dlpack dlpack
    PACKAGE dlpack
    DONOR tvm_ffi include/dlpack/dlpack.h "apache-tvm-ffi>=0.1.9"
    GIT https://github.com/dmlc/dlpack.git 007cef0eb0b2b60a62bc10df6166a7684736d31e include)
  message(STATUS "dlpack.h: ${usm_dlpack_folder}")
  add_library(usm_dlpack::dlpack_header INTERFACE IMPORTED GLOBAL)
  target_include_directories(usm_dlpack::dlpack_header SYSTEM INTERFACE "${usm_dlpack_folder}")
endif()
