#include "providers/cpu/plain/apart.h"

#include <string_view>

#include "providers/cpu/lists.h"
#include "providers/cpu/plain/epilogue.h"
#include "sdk/provider/primitive.h"

namespace tenon::provider::cpu {
namespace {

ep_primitive_desc without_epilogues(const ep_primitive_desc& desc) {
  ep_primitive_desc bare = desc;
  bare.epilogue_count = 0;
  bare.operand_count = 0;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (!is_epilogue_operand(desc.operands[i])) bare.operands[bare.operand_count++] = desc.operands[i];
  }
  return bare;
}

}  // namespace

Refusal why_not_together(const ep_device& device, const ep_primitive_desc& desc) {
  if (desc.epilogue_count == 0) return {};
  const ep_primitive_desc bare = without_epilogues(desc);
  for (const ImplementationList& list : implementation_lists()) {
    if (list.kind != desc.kind) continue;
    for (const Implementation& other : list.implementations) {
      if (other.name == std::string_view("plain")) continue;
      ep_support_info ignored{};
      if (!why_not(other, device, bare, ignored)) {
        return Refusal::because("%s is faster if the host separates the epilogues", other.name);
      }
    }
  }
  return {};
}

}  // namespace tenon::provider::cpu
