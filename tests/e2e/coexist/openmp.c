// A guest with another OpenMP run-time library: clang's.
#include <stdint.h>

__attribute__((visibility("default"))) int coexist_run(void) {
  int64_t sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(2)
  for (int64_t i = 0; i < 100000; i++) sum += i % 7;
  return sum == 299995 ? 0 : 1;
}
