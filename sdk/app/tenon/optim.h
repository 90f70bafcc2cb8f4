// Optimisers for applications: SGD, Adam, AdamW, clipping of gradients, learning rates that change.
#pragma once

#include "core/optim/optim.h"
