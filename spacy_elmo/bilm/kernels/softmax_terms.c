/* The exponentials of rows of logits, where the logits were, and their sums; see softmax_terms.py. The code is
   in softmax_terms_template.h, which is included once per number type. */

#include <float.h>

#define TEMPLATE "softmax_terms_template.h"
#include "for_each_type.h"
