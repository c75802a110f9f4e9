/* Rows shared out among the threads that torch's products run on: see team.c. */

#include <stdint.h>

/* Does rows `first` to `last` (not included) of what `arguments` points to. */
typedef void (*Rows)(const void *arguments, int64_t first, int64_t last);

/* Do all rows, in up to `threads` threads if there are numbers enough for them. */
void share_rows(int64_t threads, int64_t rows, int64_t numbers_per_row, Rows function, const void *arguments);
