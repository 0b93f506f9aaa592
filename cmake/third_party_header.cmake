# SPDX-License-Identifier: Apache-2.0
#
# Finds one header of another project, in the order that a packager, a super-project, a wheel build
# and a person with a network each need. Nothing is vendored: a header that a wheel carries is
# copied to the build folder, under the one spelling that this project includes it by.

option(USM_DLPACK_FETCH_HEADERS "Clone a third-party header that is found nowhere else" OFF)

# The interpreter whose installed wheels are searched: the active virtual environment, or the one
# given by -DPython_EXECUTABLE.
function(usm_dlpack_find_interpreter result)
  if(NOT Python_EXECUTABLE)
    find_package(Python COMPONENTS Interpreter QUIET)
  elseif(IS_ABSOLUTE "${Python_EXECUTABLE}" AND NOT EXISTS "${Python_EXECUTABLE}")
    message(FATAL_ERROR "Python_EXECUTABLE: expected an interpreter, found ${Python_EXECUTABLE}, "
      "which does not exist; correct the path")
  endif()
  set(${result} "${Python_EXECUTABLE}" PARENT_SCOPE)
endfunction()

# What to do for a package that this interpreter lacks.
function(usm_dlpack_installation result requirement)
  usm_dlpack_find_interpreter(interpreter)
  if(NOT interpreter)
    set(interpreter python3)
  endif()
  set(${result} "run `${interpreter} -m pip install ${requirement}`, or set \
-DPython_EXECUTABLE=<a Python that has it>" PARENT_SCOPE)
endfunction()

# Runs a few lines of Python that print one path; the result is empty where that fails.
function(usm_dlpack_ask_python result program)
  set(answer "")
  usm_dlpack_find_interpreter(interpreter)
  if(interpreter)
    execute_process(
      COMMAND "${interpreter}" -c "${program}"
      OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      set(answer "")
    endif()
  endif()
  set(${result} "${answer}" PARENT_SCOPE)
endfunction()

# What is missing stops the configure step; as a part of another project, it is only told.
if(NOT usm_dlpack_severity)
  set(usm_dlpack_severity FATAL_ERROR)
endif()

# For usm_dlpack_find_header: returns from it with a folder whose header is good.
macro(usm_dlpack_take_header folder where)
  cmake_language(CALL ${arg_CHECK} fault "${folder}/${arg_HEADER}")
  if(NOT fault)
    set(${result} "${folder}" PARENT_SCOPE)
    return()
  endif()
  list(APPEND rejected "${fault} in ${where}")
endmacro()

# usm_dlpack_find_header(<result>
#   NAME <word>             also in USM_DLPACK_<WORD>_INCLUDE_DIR, the user's own choice
#   HEADER <path>           as this project includes it
#   EXPECTED <words>        what a good one is, for the error
#   CHECK <function>        f(<result> <file>): empty if the file is good, otherwise what it is
#   TARGETS <target>...     of a super-project
#   PACKAGE <name>          for find_package, which also defines one of TARGETS
#   DONOR <module> <path> <requirement>    a wheel that carries it, found without an import
#   GIT <url> <commit> <subfolder>         where FetchContent gets it, and its include folder there
# )
# <result> becomes an include folder; empty if nothing was found.
function(usm_dlpack_find_header result)
  cmake_parse_arguments(PARSE_ARGV 1 arg
    "" "NAME;HEADER;EXPECTED;CHECK;PACKAGE" "TARGETS;DONOR;GIT")
  string(TOUPPER "USM_DLPACK_${arg_NAME}_INCLUDE_DIR" choice)
  list(GET arg_DONOR 0 donor_module)
  list(GET arg_DONOR 1 donor_path)
  list(GET arg_DONOR 2 donor_requirement)
  set(rejected "")
  set(${choice} "" CACHE PATH "Folder that holds ${arg_HEADER}")

  # 1. What the user points to is right or wrong, never passed over.
  if(${choice})
    cmake_language(CALL ${arg_CHECK} fault "${${choice}}/${arg_HEADER}")
    if(fault)
      message(FATAL_ERROR "${choice}: expected ${arg_EXPECTED}, found ${fault} in ${${choice}}; "
        "point it to the folder that holds ${arg_HEADER}")
    endif()
    set(${result} "${${choice}}" PARENT_SCOPE)
    return()
  endif()

  # 2. A target of the super-project. 3. An installed CMake package; its own version is not trusted.
  foreach(origin IN ITEMS target package)
    if(origin STREQUAL "package" AND arg_PACKAGE)
      find_package(${arg_PACKAGE} QUIET CONFIG)
    endif()
    foreach(target IN LISTS arg_TARGETS)
      if(TARGET ${target})
        get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
        foreach(folder IN LISTS folders)
          string(REGEX REPLACE "^\\$<BUILD_INTERFACE:(.*)>$" "\\1" folder "${folder}")
          usm_dlpack_take_header("${folder}" "target ${target}")
        endforeach()
      endif()
    endforeach()
  endforeach()

  # 4. A source distribution of ours may carry the header, and so may an installed package.
  foreach(folder IN ITEMS .. ../../usm_dlpack)
    set(carried "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${folder}/third_party/${arg_NAME}")
    if(EXISTS "${carried}/${arg_HEADER}")
      cmake_path(NORMAL_PATH carried)
      usm_dlpack_take_header("${carried}" third_party)
    endif()
  endforeach()

  # 5. A wheel that ships the header: the donor's, or one of ours.
  usm_dlpack_ask_python(donor "
import importlib.util, pathlib
ours = 'share/usm_dlpack/third_party/${arg_NAME}/${arg_HEADER}'
wheels = [('${donor_module}', '${donor_path}'), ('usm_dlpack', ours)]
specs = [(importlib.util.find_spec(module), path) for module, path in wheels]
files = [pathlib.Path(folder, path) for spec, path in specs if spec
         for folder in spec.submodule_search_locations]
print(next(file for file in files if file.is_file()))")
  if(donor)
    set(copy "${CMAKE_BINARY_DIR}/third_party/${arg_NAME}")
    configure_file("${donor}" "${copy}/${arg_HEADER}" COPYONLY)
    usm_dlpack_take_header("${copy}" "the wheel of ${donor_module}")
  endif()

  # 6. A clone, only where asked for. SOURCE_SUBDIR names nothing, so that its CMakeLists.txt never
  # runs.
  if(USM_DLPACK_FETCH_HEADERS)
    include(FetchContent)
    list(GET arg_GIT 0 url)
    list(GET arg_GIT 1 commit)
    list(GET arg_GIT 2 subfolder)
    set(content "usm_dlpack_${arg_NAME}")
    FetchContent_Declare(${content} GIT_REPOSITORY "${url}" GIT_TAG "${commit}" SOURCE_SUBDIR none)
    FetchContent_MakeAvailable(${content})
    usm_dlpack_take_header("${${content}_SOURCE_DIR}/${subfolder}" "the clone")
  endif()

  if(rejected)
    list(JOIN rejected ", " found)
  else()
    set(found "no such header")
  endif()
  usm_dlpack_installation(remedy "\"${donor_requirement}\"")
  set(${result} "" PARENT_SCOPE)
  message(${usm_dlpack_severity} "${arg_HEADER}: expected ${arg_EXPECTED}, found ${found}; "
    "${remedy}, "
    "or set -D${choice}=<folder>, or set -DUSM_DLPACK_FETCH_HEADERS=ON to clone it")
endfunction()
