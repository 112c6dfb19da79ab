/// What somebody tries who has taken over the transcoder.
#pragma once
#include <sys/types.h>

/// Tries what reaches the server and others, then what the process must be able to do itself.
/// @return the names of what was possible, with commas between.
const char *trespass(pid_t server);
