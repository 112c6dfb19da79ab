#include "CSRTP.h"
