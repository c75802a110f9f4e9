/* Rows shared out among the threads that torch's products run on: see threads.c. */

#include <stdint.h>

/* Does rows `first` to `last` (not included) of what `arguments` points to. */
typedef void (*Rows)(const void *arguments, int64_t first, int64_t last);

/* Do all rows, in `threads` threads if there is enough to do. That is torch's number of threads, and no other; `cost` is
   that of one row, in units of one LSTM cell's gates. */
void spacy_elmo_share_rows(int64_t threads, int64_t rows, int64_t cost, Rows function, const void *arguments);
