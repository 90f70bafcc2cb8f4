// The functions of an OpenMP run time that oneDNN calls, and this provider with it.
//
// openmp.cpp defines them, by Team. The host maps the plug-in so that it and what it needs look in the plug-in first;
// so oneDNN finds them here. There are two exceptions. The program may have mapped oneDNN earlier: then oneDNN uses the
// program's run time, and this provider tells that one how wide regions are. And in a process with a sanitizer the
// program comes first: then oneDNN and this provider both use an OpenMP run time that the program has loaded for all.
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

// How many threads oneDNN's next regions of the calling thread have.
int32_t region_width();
void set_region_width(int32_t width);

}  // namespace tenon::provider::cpu
