# SPDX-License-Identifier: Apache-2.0
#
# Carries dlpack.h and mdspan.hpp on, each in a folder of its own with its licence: into an sdist,
# which thus needs no donor, and beside our headers where they are installed.

include("${CMAKE_CURRENT_LIST_DIR}/find_dlpack.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/find_mdspan.cmake")

# The header and the licences of one project. Both are under the Apache licence, whose text is ours.
function(usm_dlpack_third_party_files header licences name)
  get_target_property(folder usm_dlpack::${name}_header INTERFACE_INCLUDE_DIRECTORIES)
  file(GLOB found "${folder}/${name}/${name}.h" "${folder}/${name}/${name}.hpp")
  file(STRINGS "${found}" siblings REGEX "^ *# *include *\"[^\"]*/")
  if(siblings)
    list(GET siblings 0 sibling)
    string(TOUPPER "USM_DLPACK_${name}_INCLUDE_DIR" choice)
    message(FATAL_ERROR "${found}: expected one header that stands alone, found `${sibling}`; "
      "set -D${choice}=<folder> to one that has the single header, "
      "or -DUSM_DLPACK_INSTALL_THIRD_PARTY=OFF")
  endif()
  set(texts "${PROJECT_SOURCE_DIR}/LICENSE")
  if(name STREQUAL "mdspan")
    list(APPEND texts "${PROJECT_SOURCE_DIR}/cmake/LLVM-exception.txt")
  endif()
  set(${header} "${found}" PARENT_SCOPE)
  set(${licences} "${texts}" PARENT_SCOPE)
endfunction()

# Copies them now, and leaves nothing else in the folder.
function(usm_dlpack_gather_third_party folder)
  file(REMOVE_RECURSE "${folder}")
  foreach(name IN ITEMS dlpack mdspan)
    usm_dlpack_third_party_files(header licences ${name})
    file(COPY ${header} DESTINATION "${folder}/${name}/${name}")
    file(COPY ${licences} DESTINATION "${folder}/${name}")
  endforeach()
endfunction()

# Copies them when the project is installed.
function(usm_dlpack_install_third_party folder)
  foreach(name IN ITEMS dlpack mdspan)
    usm_dlpack_third_party_files(header licences ${name})
    install(FILES ${header} DESTINATION "${folder}/${name}/${name}")
    install(FILES ${licences} DESTINATION "${folder}/${name}")
  endforeach()
endfunction()
