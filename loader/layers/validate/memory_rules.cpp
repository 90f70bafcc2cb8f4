// The rules of blocks and transfers.
#include "loader/layers/validate/rules.h"
#include "primitives/text/format.h"

namespace tenon::loader::validate {
namespace {

const MemoryPool* pool_of(const Memory& memory) {
  const auto& pools = memory.layer->info.pools;
  return memory.pool < pools.size() ? &pools[memory.pool] : nullptr;
}

void check_flush(Call& call, const Memory& memory, uint64_t offset, uint64_t size) {
  check_range(call, memory, offset, size, "the range");
  const MemoryPool* pool = pool_of(memory);
  const uint64_t atom = pool == nullptr ? 1 : pool->minimum_alignment;
  const bool ends = size % atom == 0 || offset + size == memory.size;
  if (offset % atom != 0 || !ends) {
    call.refuse("M05", fmt::format("the range of {} bytes at {} is not a multiple of the pool's minimum_alignment {}",
                                   size, offset, atom));
  }
}

void check_import(Call& call, const void* pointer, uint64_t size) {
  if (pointer == nullptr || size == 0) call.refuse("A01", "the host memory is NULL or of 0 bytes");
}

// Compares offsets and size of a transfer with the granularity of its pools.
void check_multiples(Call& call, std::initializer_list<const Memory*> memories,
                     std::initializer_list<uint64_t> numbers) {
  for (const Memory* memory : memories) {
    const MemoryPool* pool = memory == nullptr ? nullptr : pool_of(*memory);
    for (const uint64_t number : numbers) {
      if (pool == nullptr || number % pool->copy_granularity == 0) continue;
      return call.refuse(
          "M12", fmt::format("an offset or size is {}, which is not a multiple of the pool's copy_granularity {}",
                             number, pool->copy_granularity));
    }
  }
}

// The accesses of a copy.
std::vector<RecordedCommands::Access> accesses_of(const Buffer& dst, const Buffer& src, uint64_t size) {
  const auto unit = [](const Memory& memory) {
    const MemoryPool* pool = pool_of(memory);
    return pool == nullptr ? 1 : std::max<uint64_t>(1, pool->copy_granularity);
  };
  return {{src.object, src.offset, size, unit(*src.object), false},
          {dst.object, dst.offset, size, unit(*dst.object), true}};
}

}  // namespace

bool is_exclusive(const Memory& memory) {
  const MemoryPool* pool = pool_of(memory);
  return pool != nullptr && (pool->flags & EP_POOL_FLAG_EXCLUSIVE) != 0;
}

void check_range(Call& call, const Memory& memory, uint64_t offset, uint64_t size, const std::string& what) {
  if (size == 0) return call.refuse("A01", fmt::format("{} has 0 bytes", what));
  if (offset <= memory.size && size <= memory.size - offset) return;
  call.refuse("M05", fmt::format("{}, {} bytes at {}, does not fit into its block of {} bytes", what, size, offset,
                                 memory.size));
}

void before(Tag<Slot::memory_allocate>, Call& call, Device&, Argument<uint32_t>& pool, Number& size,
            Argument<ep_memory**>&, Error&) {
  if (call.refused()) return;
  const auto& pools = call.layer->info.pools;
  if (size.value == 0) call.refuse("A01", "a block of 0 bytes was requested");
  if (pool.value >= pools.size()) {
    return call.refuse("A01", fmt::format("pool {} was requested; there are {} pools", pool.value, pools.size()));
  }
  if ((pools[pool.value].flags & EP_POOL_FLAG_IMAGE) != 0) {
    return call.refuse(
        "Y06", fmt::format("pool {} is EP_POOL_FLAG_IMAGE, and its blocks come from layout_allocate", pool.value));
  }
  const uint64_t largest = pools[pool.value].largest_allocation;
  if (largest != 0 && size.value > largest) {
    call.refuse("A01",
                fmt::format("{} bytes were requested; the pool's largest_allocation is {}", size.value, largest));
  }
}

void after(Tag<Slot::memory_allocate>, Call&, ep_status, Device&, Argument<uint32_t>& pool, Number& size,
           Argument<ep_memory**>& out, Error&) {
  if (out.object == nullptr) return;
  out.object->size = size.value;
  out.object->pool = pool.value;
}

void before(Tag<Slot::memory_free>, Call& call, Device&, MemoryHandle& memory) {
  if (memory.object != nullptr) call.check_unused(*memory.object);
  check_no_list(call, memory.object);
  if (memory.object != nullptr && memory.object->constants != 0) {
    call.note("G04", "a constant of a compiled graph lies in the memory");
  }
}

void after(Tag<Slot::memory_free>, Call&, ep_status, Device&, MemoryHandle& memory) {
  if (memory.object != nullptr) Objects::instance().bury(memory.object);
}

void before(Tag<Slot::memory_map>, Call& call, Device&, MemoryHandle& memory, Argument<void**>&, Error&) {
  if (memory.object == nullptr || memory.object->imported) return;
  if (memory.object->image) return call.refuse("Y06", "the block is an image");
  const MemoryPool* pool = pool_of(*memory.object);
  if (pool != nullptr && (pool->flags & EP_POOL_FLAG_HOST_VISIBLE) == 0) {
    call.refuse("M02", "the block's pool is not HOST_VISIBLE");
  }
}

void after(Tag<Slot::memory_map>, Call& call, ep_status status, Device&, MemoryHandle& memory, Argument<void**>& out,
           Error&) {
  if (status != EP_STATUS_OK || memory.object == nullptr) return;
  Memory& block = *memory.object;
  const MemoryPool* pool = pool_of(block);
  const auto address = reinterpret_cast<uintptr_t>(out.written);
  if (out.written == nullptr) return call.blame("R01", "it returned OK and gave no address");
  if (pool != nullptr && !block.imported && address % pool->minimum_alignment != 0) {
    call.blame("M03", fmt::format("the block's address ends in {}; the pool's minimum_alignment is {}",
                                  address % pool->minimum_alignment, pool->minimum_alignment));
  }
  if (block.host != nullptr && block.host != out.written) {
    call.blame("M02", "it gave another address than before, and mappings are persistent");
  }
  block.host = out.written;
}

void before(Tag<Slot::memory_flush>, Call& call, Device&, MemoryHandle& memory, Number& offset, Number& size, Error&) {
  check_flush(call, *memory.object, offset.value, size.value);
}

void before(Tag<Slot::memory_invalidate>, Call& call, Device&, MemoryHandle& memory, Number& offset, Number& size,
            Error&) {
  check_flush(call, *memory.object, offset.value, size.value);
}

void before(Tag<Slot::memory_import_host>, Call& call, Device&, Argument<void*>& pointer, Number& size,
            Argument<ep_memory**>&, Error&) {
  check_import(call, pointer.value, size.value);
}

void after(Tag<Slot::memory_import_host>, Call&, ep_status, Device&, Argument<void*>& pointer, Number& size,
           Argument<ep_memory**>& out, Error&) {
  if (out.object == nullptr) return;
  out.object->host = pointer.value;
  out.object->size = size.value;
  out.object->imported = true;
}

void before(Tag<Slot::copy>, Call& call, StreamHandle& stream, Buffer& dst, Buffer& src, Number& size, Error&) {
  if (dst.object == nullptr || src.object == nullptr) return;
  check_range(call, *dst.object, dst.offset, size.value, "the destination");
  check_range(call, *src.object, src.offset, size.value, "the source");
  const bool apart = dst.offset + size.value <= src.offset || src.offset + size.value <= dst.offset;
  if (dst.object == src.object && !apart) call.refuse("P05", "source and destination overlap");
  if (dst.object == src.object && is_exclusive(*dst.object)) {
    call.refuse("M11", "source and destination lie in one block of a pool that is EP_POOL_FLAG_EXCLUSIVE");
  }
  check_multiples(call, {dst.object, src.object}, {dst.offset, src.offset, size.value});
  check_plain(call, src.object, src.offset, "the source");
  if (dst.object->image) call.refuse("Y06", "the destination is an image");
  if (!call.refused()) check_bindings(call, *stream.object, accesses_of(dst, src, size.value));
}

void after(Tag<Slot::copy>, Call&, ep_status status, StreamHandle& stream, Buffer& dst, Buffer& src, Number& size,
           Error&) {
  if (stream.object->recording != nullptr) {
    note_recorded(*stream.object, status, nullptr, accesses_of(dst, src, size.value));
    status = status == EP_STATUS_OK ? EP_STATUS_BUSY : status;  // a stream that records runs nothing
  }
  if (status != EP_STATUS_OK) return;
  submitted(*stream.object, {dst.object, src.object});
  forget_values(*dst.object, dst.offset, size.value);
}

void before(Tag<Slot::upload>, Call& call, StreamHandle&, Buffer& dst, Argument<const void*>& src, Number& size,
            Error&) {
  if (src.value == nullptr) call.refuse("A01", "the source is NULL");
  if (dst.object != nullptr) check_range(call, *dst.object, dst.offset, size.value, "the destination");
  check_multiples(call, {dst.object}, {dst.offset, size.value});
  if (dst.object != nullptr && dst.object->image) call.refuse("Y06", "the destination is an image");
}

void after(Tag<Slot::upload>, Call&, ep_status status, StreamHandle& stream, Buffer& dst, Argument<const void*>&,
           Number& size, Error&) {
  if (status != EP_STATUS_OK) return;
  submitted(*stream.object, {dst.object});
  forget_values(*dst.object, dst.offset, size.value);
}

void before(Tag<Slot::download>, Call& call, StreamHandle&, Argument<void*>& dst, Buffer& src, Number& size, Error&) {
  if (dst.value == nullptr) call.refuse("A01", "the destination is NULL");
  if (src.object != nullptr) check_range(call, *src.object, src.offset, size.value, "the source");
  check_multiples(call, {src.object}, {src.offset, size.value});
  check_plain(call, src.object, src.offset, "the source");
}

void after(Tag<Slot::download>, Call&, ep_status status, StreamHandle& stream, Argument<void*>&, Buffer& src, Number&,
           Error&) {
  if (status == EP_STATUS_OK) submitted(*stream.object, {src.object});
}

void before(Tag<Slot::peer_open>, Call& call, Device&, Device&, Error&) {
  if (call.peer == call.layer) return call.refuse("M10", "the peer is the device itself");
  if (call.peer->provider != call.layer->provider) {
    call.refuse("M10", fmt::format("the peer {} belongs to another provider", call.peer->spelling));
  }
}

void after(Tag<Slot::peer_open>, Call& call, ep_status status, Device&, Device&, Error&) {
  if (status == EP_STATUS_OK) call.layer->peers.insert(call.peer);
}

void before(Tag<Slot::peer_copy>, Call& call, StreamHandle&, Buffer& dst, Device&, Buffer& src, Number& size, Error&) {
  if (call.layer->peers.count(call.peer) == 0) {
    return call.refuse("M10", fmt::format("peer_open of the peer {} has not returned OK", call.peer->spelling));
  }
  if (dst.object != nullptr) check_range(call, *dst.object, dst.offset, size.value, "the destination");
  if (src.object != nullptr) check_range(call, *src.object, src.offset, size.value, "the source");
  check_plain(call, src.object, src.offset, "the source");
  if (dst.object != nullptr && dst.object->image) call.refuse("Y06", "the destination is an image");
}

void after(Tag<Slot::peer_copy>, Call&, ep_status status, StreamHandle& stream, Buffer& dst, Device&, Buffer& src,
           Number&, Error&) {
  if (status == EP_STATUS_OK) submitted(*stream.object, {dst.object, src.object});
}

}  // namespace tenon::loader::validate
