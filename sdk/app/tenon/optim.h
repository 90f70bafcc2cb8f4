// Optimisers for applications: SGD, Adam, AdamW, gradient clipping, learning rate schedules.
#pragma once

#include "core/optim/optim.h"
