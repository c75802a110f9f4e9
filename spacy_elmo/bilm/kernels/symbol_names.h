/* Names of functions: what they do, the type of their numbers and the kind of processor, and the version of their arguments
   (abi.py). */

#define JOINED(name, variant, abi) name##_##variant##_##abi
#define EXPANDED(name, variant, abi) JOINED(name, variant, abi)
#define OF_VARIANT(name, variant) EXPANDED(name, variant, ABI)
