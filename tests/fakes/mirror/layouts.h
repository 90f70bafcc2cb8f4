// Operands in layouts of the mirror's own.
#pragma once

#include <string>
#include <vector>

#include "ep_api/ep_api.h"

namespace tenon::mirror {

// Returns why the mirror refuses the opaque operands of `desc`; empty: it accepts them.
std::string why_not_layouts(const ep_device* device, const ep_primitive_desc& desc);
void wish_layouts(const ep_device* device, const ep_primitive_desc& desc, int64_t* wishes);
// Returns `desc` with row-major operands in place of the opaque ones.
ep_primitive_desc plain_primitive(const ep_primitive_desc& desc);

// Row-major memory in place of opaque operands, for one run.
class PlainOperands {
 public:
  PlainOperands(const ep_device* device, const ep_primitive_desc& desc);
  void unpack(void** operands);  // before the run
  void pack();                   // after it

 private:
  const ep_device* device_;
  const ep_primitive_desc& desc_;
  char* values_[EP_MAX_OPERANDS] = {};
  std::vector<char> elements_[EP_MAX_OPERANDS];
};

void fill_layouts(ep_device_ops* ops);

}  // namespace tenon::mirror
