/* The OpenMP team of torch, whose threads are awake between two products.

   It is called through pointers and not linked: a second OpenMP library would have threads of its own, and the two would
   wait for each other's cores. Where torch's is of another kind, everything is done by the thread that calls. */

#include "team.h"

#include <stddef.h>

typedef void (*Parallel)(void (*part)(void *), void *data, unsigned threads, unsigned flags);
typedef int (*Number)(void);

static Parallel parallel = NULL;
static Number thread_number = NULL, thread_count = NULL;

/* Waking a thread costs about as much as the element-wise work on so many numbers. */
static const int64_t FEWEST_NUMBERS = 8192;

/* GOMP_parallel, omp_get_thread_num and omp_get_num_threads. */
void use_team(Parallel gomp_parallel, Number get_thread_num, Number get_num_threads) {
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
    /* The team may be smaller than was asked for. */
    int64_t number = thread_number(), count = thread_count();
    work->function(work->arguments, work->rows * number / count, work->rows * (number + 1) / count);
}

void share_rows(int64_t threads, int64_t rows, int64_t numbers_per_row, Rows function, const void *arguments) {
    threads = threads < rows ? threads : rows;
    if (threads < 2 || parallel == NULL || rows * numbers_per_row < FEWEST_NUMBERS) {
        function(arguments, 0, rows);
        return;
    }
    Work work = {function, arguments, rows};
    parallel(part, &work, (unsigned)threads, 0);
}
