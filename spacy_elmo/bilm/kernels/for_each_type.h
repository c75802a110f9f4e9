/* Includes TEMPLATE once for float32 and once for bfloat16, in C that a compiler turns into vectors.

   NUMBER is the type of what is stored, READ and WRITE convert it from and to float, and NAMED(name) is the name of a
   function for this type. */

#include "scalar_math.h"
#include "symbol_names.h"

#define NUMBER float
#define READ(x) (x)
#define WRITE(x) (x)
#define NAMED(name) OF_FLOAT32(name)
#include TEMPLATE
#undef NUMBER
#undef READ
#undef WRITE
#undef NAMED

#define NUMBER uint16_t
#define READ from_bfloat16
#define WRITE to_bfloat16
#define NAMED(name) OF_BFLOAT16(name)
#include TEMPLATE
#undef NUMBER
#undef READ
#undef WRITE
#undef NAMED
