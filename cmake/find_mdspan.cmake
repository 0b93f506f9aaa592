# SPDX-License-Identifier: Apache-2.0
#
# Defines the target `usm_dlpack::mdspan_header`: the reference implementation of mdspan, included
# as <mdspan/mdspan.hpp> and living in the namespace Kokkos. Only tests, examples and bindings use
# it.

include("${CMAKE_CURRENT_LIST_DIR}/third_party_header.cmake")

function(usm_dlpack_check_mdspan result file)
  set(fault "")
  if(NOT EXISTS "${file}")
    set(fault "no such header")
  else()
    file(STRINGS "${file}" lines REGEX "MDSPAN_IMPL_STANDARD_NAMESPACE")
    if(NOT lines)
      set(fault "one whose namespace cannot be chosen")
    endif()
  endif()
  set(${result} "${fault}" PARENT_SCOPE)
endfunction()

if(NOT TARGET usm_dlpack::mdspan_header)
  usm_dlpack_find_header(usm_dlpack_folder
    NAME mdspan
    HEADER mdspan/mdspan.hpp
    EXPECTED "kokkos/mdspan newer than its tag 0.6.0"
    CHECK usm_dlpack_check_mdspan
    TARGETS std::mdspan mdspan::mdspan mdspan
    PACKAGE mdspan
    DONOR basix include/basix/mdspan.hpp "fenics-basix>=0.10"
    GIT https://github.com/kokkos/mdspan.git 3950fa1fe6ac47b786a261cdb34ee8190331c8d1 include)
endif()
if(NOT TARGET usm_dlpack::mdspan_header AND usm_dlpack_folder)
  message(STATUS "mdspan.hpp: ${usm_dlpack_folder}")
  add_library(usm_dlpack::mdspan_header INTERFACE IMPORTED GLOBAL)
  target_include_directories(usm_dlpack::mdspan_header SYSTEM INTERFACE "${usm_dlpack_folder}")
  target_compile_definitions(usm_dlpack::mdspan_header INTERFACE
    MDSPAN_IMPL_STANDARD_NAMESPACE=Kokkos MDSPAN_IMPL_PROPOSED_NAMESPACE=Experimental)
endif()
