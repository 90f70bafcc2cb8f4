// The part of libgomp's interface that oneDNN calls, implemented with Team.
// Source: https://gcc.gnu.org/onlinedocs/libgomp/The-libgomp-ABI.html, and the OpenMP specification, chapter "Runtime
// Library Routines".
#include "providers/cpu/threads/openmp.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <link.h>
#include <sched.h>

#include "ep_api/ep_api.h"
#include "providers/cpu/threads/team.h"

using tenon::provider::cpu::Team;

namespace {

thread_local int wanted = 0;  // threads of the next regions; 0: one per processor

int processors() {
  static const int count = [] {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  }();
  return count;
}

const link_map* library_of(const void* address) {
  Dl_info info{};
  void* library = nullptr;
  return dladdr1(address, &info, &library, RTLD_DL_LINKMAP) == 0 ? nullptr : static_cast<const link_map*>(library);
}

// The functions of another run time that oneDNN uses; NULL if it uses the functions below.
struct OtherRunTime {
  int (*width)() = nullptr;
  void (*set_width)(int) = nullptr;
};

// If oneDNN was loaded before this plug-in, it does not use the functions below.
OtherRunTime find_other() {
  const link_map* own = library_of(reinterpret_cast<const void*>(&processors));
  const link_map* onednn = library_of(reinterpret_cast<const void*>(&dnnl_version));
  for (const link_map* map = own; map != nullptr && map != onednn; map = map->l_prev) {
    if (map->l_prev == nullptr) return {};
  }
  void* const program = dlopen(nullptr, RTLD_NOW);
  OtherRunTime other;
  for (void* where : {program, static_cast<void*>(RTLD_DEFAULT)}) {
    other.width = reinterpret_cast<int (*)()>(dlsym(where, "omp_get_max_threads"));
    other.set_width = reinterpret_cast<void (*)(int)>(dlsym(where, "omp_set_num_threads"));
    if (other.width != nullptr && other.set_width != nullptr) return other;
  }
  return {};
}

const OtherRunTime& other_run_time() {
  static const OtherRunTime other = find_other();
  return other;
}

}  // namespace

extern "C" {

EP_EXPORT int omp_get_max_threads(void) { return wanted > 0 ? wanted : processors(); }
EP_EXPORT int omp_get_num_threads(void) { return Team::parts(); }
EP_EXPORT int omp_get_thread_num(void) { return Team::part(); }
EP_EXPORT int omp_in_parallel(void) { return Team::is_inside() ? 1 : 0; }
EP_EXPORT void GOMP_barrier(void) { Team::barrier(); }

// threads == 0 means the result of omp_get_max_threads.
EP_EXPORT void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned /*flags*/) {
  Team::run(body, data, threads > 0 ? static_cast<int32_t>(threads) : omp_get_max_threads());
}

}  // extern "C"

namespace tenon::provider::cpu {

int32_t region_width() {
  const OtherRunTime& other = other_run_time();
  return other.width != nullptr ? other.width() : omp_get_max_threads();
}

void set_region_width(int32_t width) {
  wanted = width;
  if (const OtherRunTime& other = other_run_time(); other.set_width != nullptr) {
    other.set_width(width);
    return;
  }
  if (omp_get_max_threads() == width) return;
  // Another run time, which the program has loaded globally, answers.
  using Set = void (*)(int);
  static const auto set = reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) set(width);
}

}  // namespace tenon::provider::cpu
