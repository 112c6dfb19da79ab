// libwebsockets, and inline functions for its macros.
#pragma once
#include <libwebsockets.h>
