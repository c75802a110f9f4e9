/* Division of rows among torch's threads; see threads.c. */

#include <stdint.h>

/* Function that processes the rows first, first + 1, ..., last - 1 of `arguments`. */
typedef void (*Rows)(const void *arguments, int64_t first, int64_t last);

/* Process all rows, in `threads` threads if there is enough work. `threads` must be torch's number of threads. `cost` is the
   cost of one row, where the gates of one LSTM cell cost 1. */
void spacy_elmo_share_rows(int64_t threads, int64_t rows, int64_t cost, Rows function, const void *arguments);
