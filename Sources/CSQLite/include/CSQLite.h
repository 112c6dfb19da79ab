// SQLite, as Debian packages it (3.40).
#pragma once
#include <sqlite3.h>
