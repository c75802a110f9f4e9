/* The maximum over the positions of a word, and which position has it; see pooling.py. */

#define TEMPLATE "pooling.h"
#include "plain_types.h"
