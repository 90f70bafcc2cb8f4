target_sources(tenon_core PRIVATE
  tensor/storage.cpp
  vm/inline.cpp
  vm/lifecycle.cpp
  vm/trace.cpp
  vm/vm.cpp)
