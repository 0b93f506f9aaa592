# SPDX-License-Identifier: Apache-2.0
#
# Carries dlpack.h and mdspan.hpp on, each in a folder of its own with its licence: into an sdist,
# which thus needs no donor, and beside our headers where they are installed.

include("${CMAKE_CURRENT_LIST_DIR}/find_dlpack.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/find_mdspan.cmake")

# Both are under the Apache licence, whose text is ours. They are copied now for an sdist, otherwise
# when the project is installed.
function(usm_dlpack_carry_third_party folder)
  foreach(name IN ITEMS dlpack mdspan)
    get_target_property(origin usm_dlpack::${name}_header INTERFACE_INCLUDE_DIRECTORIES)
    file(GLOB header "${origin}/${name}/${name}.h" "${origin}/${name}/${name}.hpp")
    file(STRINGS "${header}" siblings REGEX "^ *# *include *\"[^\"]*/")
    if(siblings)
      list(GET siblings 0 sibling)
      string(TOUPPER "USM_DLPACK_${name}_INCLUDE_DIR" choice)
      message(FATAL_ERROR "${header}: expected one header that stands alone, found `${sibling}`; "
        "set -D${choice}=<folder> to one that has the single header, "
        "or -DUSM_DLPACK_INSTALL_THIRD_PARTY=OFF")
    endif()
    set(licences "${PROJECT_SOURCE_DIR}/LICENSE")
    if(name STREQUAL "mdspan")
      list(APPEND licences "${PROJECT_SOURCE_DIR}/cmake/LLVM-exception.txt")
    endif()
    if(SKBUILD_STATE STREQUAL "sdist")
      file(COPY ${header} DESTINATION "${folder}/${name}/${name}")
      file(COPY ${licences} DESTINATION "${folder}/${name}")
    else()
      install(FILES ${header} DESTINATION "${folder}/${name}/${name}")
      install(FILES ${licences} DESTINATION "${folder}/${name}")
    endif()
  endforeach()
endfunction()
