// TableBuffer: zeroed memory in which a plug-in fills a struct, and the rules for accepting that struct.
#pragma once

#include <cstring>
#include <string>

#include "primitives/status/status.h"

namespace tenon::loader {

// The header of every struct that may grow.
struct TableHeader {
  uint32_t struct_size;
  uint32_t struct_type;
  const void* next;
};

constexpr uint32_t table_room = 4096;
// A struct type with this bit in a chain of extensions must be refused if it is unknown.
constexpr uint32_t extension_refuse_bit = UINT32_C(1) << 31;

// Checks the `filled` bytes at `bytes`: type, size, unknown tail, chain of extensions. `what` begins the error
// sentences.
Status check_table(const unsigned char* bytes, uint32_t known_size, uint32_t type, const std::string& what);

template <class T>
class TableBuffer {
 public:
  explicit TableBuffer(uint32_t type) : type_(type) {
    static_assert(sizeof(T) < table_room / 2 && sizeof(T) % 8 == 0);
    const TableHeader header{sizeof(T), type, nullptr};
    std::memcpy(bytes_, &header, sizeof header);
  }

  T* get() { return reinterpret_cast<T*>(bytes_); }

  // The struct that the plug-in filled, in full size. The bytes that it did not fill are zero.
  Result<T> accept(const std::string& what) const {
    TENON_RETURN_IF_ERROR(check_table(bytes_, sizeof(T), type_, what));
    TableHeader header{};
    std::memcpy(&header, bytes_, sizeof header);
    T table{};
    std::memcpy(&table, bytes_, std::min<size_t>(header.struct_size, sizeof(T)));
    return table;
  }

 private:
  alignas(16) unsigned char bytes_[table_room] = {};
  uint32_t type_;
};

}  // namespace tenon::loader
