// The index of every Prepared that a thread keeps. A thread that meets a signature for the first time looks here for
// the Prepared of another thread. The index keeps nothing alive, so the tables of the threads bound its size. Internal.
#pragma once

#include <cstdint>
#include <memory>

#include "core/interpreter/prepared.h"

namespace tenon {

// The Prepared that a thread keeps for the signature `key`, or null. Thread-safe.
std::shared_ptr<const Prepared> find_prepared(uint64_t hash, const uint64_t* key, size_t words);

// Shares `prepared`, whose key is set. Returns it, or the Prepared that another thread has shared in the meantime.
// Thread-safe.
std::shared_ptr<const Prepared> share_prepared(uint64_t hash, std::unique_ptr<Prepared> prepared);

// Like share_prepared, but `prepared` replaces one with open sizes or one that is outdated. Thread-safe.
std::shared_ptr<const Prepared> share_instead(uint64_t hash, std::unique_ptr<Prepared> prepared);

}  // namespace tenon
