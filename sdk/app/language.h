// The language that Tenon's headers need. Every public header includes this file before all others.
#pragma once

#if __cplusplus < 202002L
#error "Tenon needs C++20: compile with -std=c++20 or a newer standard."
#include <c++20>  // no such file: the compilation ends here, so that the error above is the only one to read
#endif
