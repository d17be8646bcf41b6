#include "harness/tensors.h"
