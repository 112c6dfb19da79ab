// SQLite, as Debian packages it (3.40), and functions for what are casts in C and cannot be said in Swift.
#pragma once
#include <sqlite3.h>

/// Binds a copy of `count` bytes; none is an empty value, not NULL.
int csqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count);
int csqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int count);
// Why the system refused the last thing that SQLite asked of it for this connection's files (errno.h); 0 if it never did.
// sqlite3_system_errno knows nothing of what failed while a transaction was committed: that is asked of the log's file.
int csqlite_errno(sqlite3 *database);
