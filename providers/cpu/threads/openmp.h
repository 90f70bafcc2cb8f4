// The functions of an OpenMP run time that oneDNN and this provider call.
//
// openmp.cpp implements them with Team. The host loads the plug-in so that the plug-in and its libraries search it for
// symbols first; so oneDNN finds these functions. There are two exceptions. If the program loaded oneDNN earlier,
// oneDNN uses the program's run time, and this provider sets the width of regions there. In a process with a sanitizer,
// the program is searched first: oneDNN and this provider then both use the OpenMP run time that the program has loaded
// globally.
#pragma once

#include <cstdint>

extern "C" {
void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned flags);
void GOMP_barrier(void);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_max_threads(void);
int omp_in_parallel(void);
}

namespace tenon::provider::cpu {

// The number of threads of oneDNN's next regions on the calling thread.
int32_t region_width();
void set_region_width(int32_t width);

}  // namespace tenon::provider::cpu
