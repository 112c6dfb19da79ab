#include "CSQLite.h"

#include <stddef.h>

int csqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count) {
    if (count == 0) return sqlite3_bind_zeroblob(statement, index, 0);
    return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}

int csqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int count) {
    return sqlite3_bind_text(statement, index, count == 0 ? "" : text, count, SQLITE_TRANSIENT);
}

int csqlite_errno(sqlite3 *database) {
    int code = 0;
    sqlite3_file *log = NULL;
    // Journal or log, whichever there is (sqlite.org/c3ref/c_fcntl_begin_atomic_write.html).
    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log != NULL &&
        log->pMethods != NULL)
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &code);
    return code != 0 ? code : sqlite3_system_errno(database);
}
