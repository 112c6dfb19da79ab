/* Where zlib is comes from pkg-config. */
#include <zlib.h>
