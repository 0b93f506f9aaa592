// SPDX-License-Identifier: Apache-2.0
//
// Two shared libraries that use the headers in one process, maybe of two versions, each have a
// device table and functions of queues of their own. Arguments: their files.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

int main(int, char** arguments) {
  const void* tables[2] = {};
  const void* functions[2] = {};
  for (int place = 0; place < 2; ++place) {
    void* library = dlopen(arguments[place + 1], RTLD_NOW | RTLD_GLOBAL);
    void* found = library == nullptr ? nullptr : dlsym(library, "device_table_here");
    if (found == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
    std::size_t count = 0;
    tables[place] = reinterpret_cast<const void* (*)(std::size_t&)>(found)(count);
    functions[place] =
        reinterpret_cast<const void* (*)()>(dlsym(library, "queue_functions_here"))();
    std::printf("expected a table of one device, found %p of %zu\n", tables[place], count);
    if (count != 1) return 1;
  }
  return tables[0] == tables[1] || functions[0] == functions[1] ? 1 : 0;
}
