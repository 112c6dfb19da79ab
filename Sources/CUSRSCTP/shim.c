#include "CUSRSCTP.h"
