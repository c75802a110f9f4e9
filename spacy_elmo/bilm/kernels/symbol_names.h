/* Names of functions: what they do, the type of their numbers, and the version of their arguments (abi.py). */

#define JOINED(name, type, abi) name##_##type##_##abi
#define EXPANDED(name, type, abi) JOINED(name, type, abi)
#define OF_FLOAT32(name) EXPANDED(name, float32, ABI)
#define OF_BFLOAT16(name) EXPANDED(name, bfloat16, ABI)
