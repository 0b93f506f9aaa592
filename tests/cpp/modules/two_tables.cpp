// SPDX-License-Identifier: Apache-2.0
//
// Two shared libraries that use the headers in one process, maybe of two versions, each have a
// device table of their own. Arguments: their files.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

namespace {

const void* table_of(const char* file, std::size_t& count) {
  void* library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
  void* found = library == nullptr ? nullptr : dlsym(library, "device_table_here");
  if (found == nullptr) {
    std::printf("%s\n", dlerror());
    return nullptr;
  }
  return reinterpret_cast<const void* (*)(std::size_t&)>(found)(count);
}

}  // namespace

int main(int count_of_arguments, char** arguments) {
  if (count_of_arguments != 3) {
    std::printf("arguments: expected two files, found %d; name two\n", count_of_arguments - 1);
    return 2;
  }
  std::size_t first_count = 0;
  std::size_t second_count = 0;
  const void* first = table_of(arguments[1], first_count);
  const void* second = table_of(arguments[2], second_count);
  const bool right = first != nullptr && second != nullptr && first != second &&
                     first_count == 1 && second_count == 1;
  std::printf("tables: expected two of one device each, found %p of %zu and %p of %zu\n",
              first, first_count, second, second_count);
  return right ? 0 : 1;
}
