// Readers of sizes and arenas (core/symbolic): a text gives an error, or a value whose text parses to the same value.
//
// The input is the text of an arena; after a line "---" comes the text of a size.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "core/symbolic/arena.h"

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "the reader of sizes gives %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tenon::symbolic::Arena;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t cut = text.find("---\n");
  tenon::Result<Arena> read = tenon::symbolic::parse_arena(text.substr(0, cut), "fuzzed");
  if (!read.ok()) return 0;
  Arena& arena = read.value();
  const std::string written = arena.text();
  tenon::Result<Arena> again = tenon::symbolic::parse_arena(written, "again");
  require(again.ok() && again.value().text() == written, "an arena whose text does not read back");
  if (cut == std::string_view::npos) return 0;
  const tenon::Result<tenon::SymDim> found = arena.parse(text.substr(cut + 4));
  if (!found.ok()) return 0;
  const tenon::Result<tenon::SymDim> back = arena.parse(arena.text(found.value()));
  require(back.ok() && identical(back.value(), found.value()), "a size whose text does not read back");
  return 0;
}
