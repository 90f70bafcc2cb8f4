// Memory: distinct, aligned, mapped and imported blocks, and blocks that are too large.
#include <algorithm>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {
namespace {

bool maps(const Subject& subject, uint32_t pool) {
  return (subject.info.pools[pool].flags & EP_POOL_FLAG_HOST_VISIBLE) != 0 && subject.ops.memory_map != nullptr;
}

Result<uint8_t*> map(Subject& subject, const Memory& memory) {
  void* address = nullptr;
  TENON_RETURN_IF_ERROR(subject.call("memory_map", subject.ops.memory_map, subject.device, memory.get(), &address));
  return static_cast<uint8_t*>(address);
}

}  // namespace

Status memory_distinct(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  constexpr uint64_t sizes[] = {1, 3, 64, 100, 255, 4096, 5001, 70000, 1, 17};
  std::vector<Memory> blocks;
  std::vector<std::vector<uint8_t>> sent, received;
  for (uint64_t size : sizes) {
    TENON_ASSIGN_OR_RETURN(Memory block, subject.allocate(size));
    blocks.push_back(std::move(block));
    sent.push_back(random_bytes(size, blocks.size()));
    received.emplace_back(size, 0);
  }
  const Drain drain(subject, stream);
  for (size_t i = 0; i < blocks.size(); ++i) TENON_RETURN_IF_ERROR(subject.upload(stream, blocks[i], 0, sent[i]));
  for (size_t i = 0; i < blocks.size(); ++i) TENON_RETURN_IF_ERROR(subject.download(stream, blocks[i], 0, received[i]));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (sent[i] != received[i]) return broken("M08", "a block of {} bytes does not hold what was put there", sizes[i]);
  }
  return {};
}

Status memory_aligned(Subject& subject) {
  uint32_t looked_at = 0;
  for (uint32_t pool = 0; pool < subject.info.pool_count; ++pool) {
    if (!maps(subject, pool)) continue;
    const uint64_t alignment = subject.info.pools[pool].minimum_alignment;
    for (uint64_t size : {1, 7, 100, 4097, 3000000}) {
      TENON_ASSIGN_OR_RETURN(const Memory block, subject.allocate(size, pool));
      TENON_ASSIGN_OR_RETURN(uint8_t* const address, map(subject, block));
      ++looked_at;
      if (reinterpret_cast<uintptr_t>(address) % alignment != 0) {
        return broken("M03", "a block of {} bytes in pool {} does not start at a multiple of {}", size, pool,
                      alignment);
      }
    }
  }
  if (looked_at == 0) return skipped("no pool can be mapped, so no address is seen.");
  return {};
}

Status memory_too_large(Subject& subject) {
  for (uint64_t size : {uint64_t{1} << 55, uint64_t{1} << 62, ~uint64_t{0}, ~uint64_t{0} - 4000}) {
    Poisoned<ep_memory*> out("out_memory");
    const auto allocate = [&](ep_error** error) {
      return subject.ops.memory_allocate(subject.device, 0, size, &out.value, error);
    };
    TENON_RETURN_IF_ERROR(
        refuses(subject, "memory_allocate", {Code::out_of_device_memory, Code::out_of_host_memory}, allocate, out));
  }
  return memory_distinct(subject);
}

Status memory_mapped(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  uint32_t looked_at = 0;
  for (uint32_t pool = 0; pool < subject.info.pool_count; ++pool) {
    if (!maps(subject, pool)) continue;
    ++looked_at;
    const bool coherent = (subject.info.pools[pool].flags & EP_POOL_FLAG_COHERENT) != 0;
    const uint64_t size = std::max<uint64_t>(8192, subject.info.pools[pool].minimum_alignment);
    TENON_ASSIGN_OR_RETURN(const Memory block, subject.allocate(size, pool));
    TENON_ASSIGN_OR_RETURN(uint8_t* const address, map(subject, block));
    const auto by_range = [&](const char* name, auto function) {
      return coherent ? Status() : subject.call(name, function, subject.device, block.get(), uint64_t{0}, size);
    };
    const std::vector<uint8_t> written = random_bytes(size, 11), sent = random_bytes(size, 12);
    std::vector<uint8_t> received(size, 0);
    std::copy(written.begin(), written.end(), address);
    TENON_RETURN_IF_ERROR(by_range("memory_flush", subject.ops.memory_flush));
    TENON_RETURN_IF_ERROR(subject.download(stream, block, 0, received));
    TENON_RETURN_IF_ERROR(subject.finish(stream));
    if (received != written)
      return broken("M02", "the device does not see what was written through the map of pool {}", pool);
    TENON_RETURN_IF_ERROR(subject.upload(stream, block, 0, sent));
    TENON_RETURN_IF_ERROR(subject.finish(stream));
    TENON_RETURN_IF_ERROR(by_range("memory_invalidate", subject.ops.memory_invalidate));
    if (!std::equal(sent.begin(), sent.end(), address)) {
      return broken("M02", "the map of pool {} does not show what the device holds", pool);
    }
    TENON_ASSIGN_OR_RETURN(uint8_t* const again, map(subject, block));
    if (again != address) return broken("M02", "a block of pool {} was mapped at two addresses", pool);
  }
  if (looked_at == 0) return skipped("no pool can be mapped.");
  return {};
}

Status memory_imported(Subject& subject) {
  if (subject.ops.memory_import_host == nullptr) return skipped("it has no memory_import_host.");
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  constexpr uint64_t page = 4096;
  std::vector<uint8_t> bytes = random_bytes(4 * page, 21);
  uint8_t* const mine =
      reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page);
  const std::vector<uint8_t> sent(mine, mine + page);
  ep_memory* memory = nullptr;
  const Status imported = subject.call("memory_import_host", subject.ops.memory_import_host, subject.device,
                                       static_cast<void*>(mine), page, &memory);
  if (imported.code() == Code::unsupported) return skipped("it imports no ordinary page: {}", imported.sentence());
  TENON_RETURN_IF_ERROR(imported);
  Memory block(&subject, memory);
  std::vector<uint8_t> received(page, 0);
  const Drain drain(subject, stream);
  TENON_RETURN_IF_ERROR(subject.download(stream, block, 0, received));
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  if (received != sent) return broken("M09", "the device does not read the host's memory that it imported");
  block.reset();
  if (!std::equal(sent.begin(), sent.end(), mine)) return broken("M09", "memory_free changed the host's own memory");
  return {};
}

}  // namespace tenon::conformance
