// The tests of the contract. A new one is a function and a row.
#include <iterator>

#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {
namespace {

constexpr ContractTest tests[] = {
    {"loader/accepts", "N01", Needs::nothing, "A host's loader takes it: note, tables, devices.", loader_accepts},
    {"file/symbols", "N04", Needs::library, "It exports the query alone and links nothing of the host.", file_symbols},

    {"query/versions", "V01", Needs::library, "A host of a version it was not built for gets 'version'.",
     query_versions},
    {"query/newer_host", "V02", Needs::library, "What a newer host has more of is ignored.", query_newer_host},
    {"query/twice", "Q01", Needs::library, "Two plug-ins are independent; the query starts no thread.", query_twice},

    {"structs/short", "T01", Needs::device, "A struct is filled up to struct_size and no further.", structs_short},
    {"structs/long", "T02", Needs::device, "The part of a struct it does not know stays zero.", structs_long},
};

}  // namespace

std::span<const ContractTest> contract_tests() { return tests; }

}  // namespace tenon::conformance
