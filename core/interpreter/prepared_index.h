// The index of everything prepared that some thread keeps: a thread that meets a signature for the first time takes
// what another has worked out. It keeps nothing alive itself, so that what threads keep bounds it. Internal.
#pragma once

#include <cstdint>
#include <memory>

#include "core/interpreter/prepared.h"

namespace tenon {

// What some thread keeps for the signature `key`, or null. Thread-safe.
std::shared_ptr<const Prepared> find_prepared(uint64_t hash, const uint64_t* key, size_t words);

// Shares `prepared`, whose key is set: the result is it, or what another thread has shared meanwhile. Thread-safe.
std::shared_ptr<const Prepared> share_prepared(uint64_t hash, std::unique_ptr<Prepared> prepared);

}  // namespace tenon
