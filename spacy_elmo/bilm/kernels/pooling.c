/* The maximum over the positions of a word, and which position has it; see pooling.py. The code is in
   pooling_template.h, which is included once per number type. */

#define TEMPLATE "pooling_template.h"
#include "for_each_type.h"
