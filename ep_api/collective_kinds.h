// collective_kinds.h: the facts of each kind of collective, from collectives.def. C11 and C++20, nothing to link, no
// part of the contract.
#ifndef TENON_EP_API_COLLECTIVE_KINDS_H_
#define TENON_EP_API_COLLECTIVE_KINDS_H_

#include "ep_collectives.h"

#ifdef __cplusplus
#define EP_KIND_FUNCTION_ constexpr
#else
#define EP_KIND_FUNCTION_ static inline
#endif

// Returns static text; "unknown" for an id that the table of this build lacks.
EP_KIND_FUNCTION_ const char* ep_collective_name(int32_t kind) {
  switch (kind) {
#define EP_COLLECTIVE(name, id, reduces, per_rank) \
  case id:                                         \
    return #name;
#include "collectives.def"
#undef EP_COLLECTIVE
    default: return "unknown";
  }
}

// Returns 1 if the table has `kind`.
EP_KIND_FUNCTION_ int ep_collective_is_known(int32_t kind) {
  switch (kind) {
#define EP_COLLECTIVE(name, id, reduces, per_rank) case id:
#include "collectives.def"
#undef EP_COLLECTIVE
    return 1;
    default: return 0;
  }
}

// Returns 1 if the kind combines elements of different ranks.
EP_KIND_FUNCTION_ int ep_collective_reduces(int32_t kind) {
  switch (kind) {
#define EP_COLLECTIVE(name, id, reduces, per_rank) \
  case id:                                         \
    return reduces;
#include "collectives.def"
#undef EP_COLLECTIVE
    default: return 0;
  }
}

// Returns 1 if the descriptor has one count per rank instead of `count`.
EP_KIND_FUNCTION_ int ep_collective_is_per_rank(int32_t kind) {
  switch (kind) {
#define EP_COLLECTIVE(name, id, reduces, per_rank) \
  case id:                                         \
    return per_rank;
#include "collectives.def"
#undef EP_COLLECTIVE
    default: return 0;
  }
}

#endif  // TENON_EP_API_COLLECTIVE_KINDS_H_
