/* Division of rows among torch's threads; see threads.c. */

#include <stdint.h>

/* Function that processes the rows from `first` to `last` (not included) of `arguments`. */
typedef void (*Rows)(const void *arguments, int64_t first, int64_t last);

/* Process all rows, in `threads` threads if there is enough work. `threads` must be torch's number of threads. `cost` is the
   cost of one row, in units of the gates of one LSTM cell. */
void spacy_elmo_share_rows(int64_t threads, int64_t rows, int64_t cost, Rows function, const void *arguments);
