#include "core/vm/lifecycle.h"
namespace tenon::vm {
std::atomic<uint32_t> attention{0};
Status usable() { return Status(); }
void register_exit_hook() {}
void at_end(void (*)()) {}
}  // namespace tenon::vm
