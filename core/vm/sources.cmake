target_sources(tenon_core PRIVATE
  tensor/storage.cpp
  vm/engine.cpp
  vm/inline.cpp
  vm/launcher.cpp
  vm/lifecycle.cpp
  vm/queue.cpp
  vm/retire.cpp
  vm/submit.cpp
  vm/trace.cpp
  vm/transfers.cpp
  vm/vm.cpp
  vm/wait.cpp)
