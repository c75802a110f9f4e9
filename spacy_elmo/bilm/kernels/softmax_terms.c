/* The exponentials of rows of logits, where the logits were, and their sums; see softmax_terms.py. */

#include <float.h>

#define TEMPLATE "softmax_terms.h"
#include "plain_types.h"
