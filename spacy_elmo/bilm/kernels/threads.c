/* Run work in torch's OpenMP threads, which are awake between two products.

   The OpenMP functions are called through pointers. If this library were linked with OpenMP, a second team of threads would
   compete with torch's threads for the cores. If torch has another kind of OpenMP library, the calling thread does all the
   work. */

#include "threads.h"

#include <stddef.h>

typedef void (*Parallel)(void (*part)(void *), void *data, unsigned threads, unsigned flags);
typedef int (*Number)(void);

static Parallel parallel = NULL;
static Number thread_number = NULL, thread_count = NULL;

/* Starting the threads costs about as much as the gates of this number of LSTM cells. */
static const int64_t FEWEST = 8192;

/* The arguments are pointers to GOMP_parallel, omp_get_thread_num and omp_get_num_threads. */
void spacy_elmo_use_torch_threads(Parallel gomp_parallel, Number get_thread_num, Number get_num_threads) {
    parallel = gomp_parallel;
    thread_number = get_thread_num;
    thread_count = get_num_threads;
}

typedef struct {
    Rows function;
    const void *arguments;
    int64_t rows;
} Work;

static void part(void *data) {
    const Work *work = data;
    /* There may be fewer threads than requested. If there are more threads than rows, some threads get no rows. */
    int64_t number = thread_number(), count = thread_count();
    work->function(work->arguments, work->rows * number / count, work->rows * (number + 1) / count);
}

void spacy_elmo_share_rows(int64_t threads, int64_t rows, int64_t cost, Rows function, const void *arguments) {
    if (threads < 2 || rows < 2 || parallel == NULL || rows * cost < FEWEST) {
        function(arguments, 0, rows);
        return;
    }
    Work work = {function, arguments, rows};
    /* Always use all threads of torch, even for fewer rows. GCC's OpenMP ends threads that a smaller team does not need, and
       torch's next operation would have to start them again. */
    parallel(part, &work, (unsigned)threads, 0);
}
