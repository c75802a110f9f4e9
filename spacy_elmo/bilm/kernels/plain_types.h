/* Includes TEMPLATE once for float32 and once for bfloat16, in C that a compiler turns into vectors.

   LOW is the type of what is stored, READ and WRITE convert it from and to float, and NAMED(name) is the name of a function
   for this type. */

#include "names.h"
#include "numbers.h"

#define LOW float
#define READ(x) (x)
#define WRITE(x) (x)
#define NAMED(name) OF_FLOAT32(name)
#include TEMPLATE
#undef LOW
#undef READ
#undef WRITE
#undef NAMED

#define LOW uint16_t
#define READ raised
#define WRITE lowered
#define NAMED(name) OF_BFLOAT16(name)
#include TEMPLATE
#undef LOW
#undef READ
#undef WRITE
#undef NAMED
