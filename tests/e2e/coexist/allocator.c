// An allocator to preload, like jemalloc. It marks its blocks, and ends the process with a sentence if it is asked to
// free a block of another allocator. It never returns memory to the system, which a short test can afford.
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const size_t room = (size_t)1 << 36;  // reserved; pages are taken when they are used
static const uint64_t magic = UINT64_C(0x746e6e6f73616c6c);
static _Atomic(uintptr_t) next;

struct Mark {
  uint64_t magic, size;
};

static uintptr_t begin(void) {
  uintptr_t now = atomic_load(&next);
  void* fresh = NULL;
  if (now) return now;
  fresh = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) _exit(99);
  if (!atomic_compare_exchange_strong(&next, &now, (uintptr_t)fresh)) munmap(fresh, room);
  return atomic_load(&next);
}

static struct Mark* mark_of(void* pointer) {
  static const char sentence[] = "a block of another allocator was given to the preloaded one\n";
  struct Mark* mark = (struct Mark*)pointer - 1;
  if (mark->magic != magic) {
    if (write(STDERR_FILENO, sentence, sizeof sentence - 1) < 0) _exit(98);
    abort();
  }
  return mark;
}

EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  uintptr_t end = 0, at = 0;
  uintptr_t now = begin();
  if (alignment < 16) alignment = 16;
  do {
    at = (now + sizeof(struct Mark) + alignment - 1) & ~(uintptr_t)(alignment - 1);
    end = (at + size + 15) & ~(uintptr_t)15;
  } while (!atomic_compare_exchange_weak(&next, &now, end));
  ((struct Mark*)at - 1)->magic = magic;
  ((struct Mark*)at - 1)->size = size;
  return (void*)at;
}
EXPORT void* malloc(size_t size) { return aligned_alloc(16, size); }
EXPORT void* memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
EXPORT void* valloc(size_t size) { return aligned_alloc(4096, size); }
EXPORT int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = aligned_alloc(alignment, size);
  return 0;
}
// Fresh pages are zero, and no byte is given out twice.
EXPORT void* calloc(size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return malloc(bytes);
}
EXPORT void free(void* pointer) {
  if (pointer) mark_of(pointer);
}
EXPORT size_t malloc_usable_size(void* pointer) { return pointer ? mark_of(pointer)->size : 0; }
EXPORT void* realloc(void* pointer, size_t size) {
  void* fresh = malloc(size);
  const size_t old = malloc_usable_size(pointer);
  if (pointer) memcpy(fresh, pointer, old < size ? old : size);
  return fresh;
}
