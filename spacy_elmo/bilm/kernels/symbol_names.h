/* Names of the functions that Python calls: NAME_TYPE_PROCESSOR_ABI, such as product_float32_avx2_7. ABI is the version of
   the argument lists (native.py). */

#define JOINED(name, variant, abi) name##_##variant##_##abi
#define EXPANDED(name, variant, abi) JOINED(name, variant, abi)
#define OF_VARIANT(name, variant) EXPANDED(name, variant, ABI)
