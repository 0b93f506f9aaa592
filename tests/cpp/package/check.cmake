# SPDX-License-Identifier: Apache-2.0
#
# Installs the built project to an empty prefix, and builds and runs a user's project against it:
# cmake -D build=<folder> -D work=<folder> -D compiler=<path> -D python=<path> -P check.cmake

file(REMOVE_RECURSE "${work}")
foreach(command IN ITEMS
    "--install;${build};--prefix;${work}/prefix"
    "-S;${CMAKE_CURRENT_LIST_DIR};-B;${work}/user;-DCMAKE_PREFIX_PATH=${work}/prefix;\
-DCMAKE_CXX_COMPILER=${compiler};-DPython_EXECUTABLE=${python}"
    "--build;${work}/user")
  execute_process(COMMAND "${CMAKE_COMMAND}" ${command} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND "${work}/user/user" COMMAND_ERROR_IS_FATAL ANY)
