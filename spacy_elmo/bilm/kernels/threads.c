/* The OpenMP team of torch, whose threads are awake between two products.

   It is called through pointers and not linked: a second OpenMP library would have its own threads, and both teams would
   compete for the cores. If torch has another kind of OpenMP library, the calling thread does all the work. */

#include "threads.h"

#include <stddef.h>

typedef void (*Parallel)(void (*part)(void *), void *data, unsigned threads, unsigned flags);
typedef int (*Number)(void);

static Parallel parallel = NULL;
static Number thread_number = NULL, thread_count = NULL;

/* Calling the team costs about as much as computing the gates of this number of cells. */
static const int64_t FEWEST = 8192;

/* GOMP_parallel, omp_get_thread_num and omp_get_num_threads. */
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
    /* The team may be smaller than was asked for. Where it has more threads than there are rows, some have none. */
    int64_t number = thread_number(), count = thread_count();
    work->function(work->arguments, work->rows * number / count, work->rows * (number + 1) / count);
}

void spacy_elmo_share_rows(int64_t threads, int64_t rows, int64_t cost, Rows function, const void *arguments) {
    if (threads < 2 || rows < 2 || parallel == NULL || rows * cost < FEWEST) {
        function(arguments, 0, rows);
        return;
    }
    Work work = {function, arguments, rows};
    /* Never fewer threads than torch has, even for fewer rows: GCC's team ends those that a smaller one leaves over,
       and torch's next operation has to start them again. */
    parallel(part, &work, (unsigned)threads, 0);
}
