// Loads the shared libraries of the command line in their order into the global scope, like a program that links all of
// them. Runs coexist_run of each, first in turn and then all at once, and exits normally.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

// Taking its address makes the linker give a program at a fixed address an entry of its own for malloc.
void* (*volatile taken)(size_t);

int main(int argc, char** argv) {
  taken = std::malloc;
  struct Guest {
    std::string path;
    int (*run)();
  };
  std::vector<Guest> guests;
  for (int i = 1; i < argc; i++) {
    void* library = dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
    guests.push_back({argv[i], reinterpret_cast<int (*)()>(dlsym(library, "coexist_run"))});
    if (guests.back().run == nullptr) {
      std::printf("%s has no coexist_run\n", argv[i]);
      return 1;
    }
  }
  for (int round = 0; round < 3; round++) {
    for (const Guest& guest : guests) {
      if (guest.run() != 0) {
        std::printf("%s answers wrongly in round %d\n", guest.path.c_str(), round);
        return 1;
      }
    }
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (const Guest& guest : guests) {
    threads.emplace_back([&guest, &wrong] {
      for (int i = 0; i < 20; i++) wrong += guest.run() != 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%zu libraries, %d wrong answers side by side\n", guests.size(), wrong.load());
  return wrong == 0 ? 0 : 1;
}
