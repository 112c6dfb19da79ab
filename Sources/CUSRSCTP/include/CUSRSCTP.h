// usrsctp, as Debian packages it (0.9.5).
#pragma once
#include <usrsctp.h>
