// The functions of an OpenMP run time that oneDNN calls, and this provider with it.
//
// openmp.cpp defines them, by Team. A library that dlopen loads looks first among the libraries that the program has
// loaded for all, then in the plug-in, then in what the plug-in needs. So oneDNN finds them in this plug-in, unless the
// program has loaded an OpenMP run time for all. Then oneDNN and this provider both use that one.
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

// How many threads the next regions of the calling thread have that do not say it themselves.
void set_region_width(int32_t width);

}  // namespace tenon::provider::cpu
