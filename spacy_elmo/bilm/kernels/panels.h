/* A matrix as panels; see native.py. */

#ifndef PANELS_H
#define PANELS_H

#include <stddef.h>
#include <stdint.h>

/* PANEL: columns of a panel. COLUMNS: columns that are computed together, which are 4 panels. For the gates of an LSTM, these
   are one panel of each gate. */
enum { PANEL = 16, GATES = 4, COLUMNS = 64 };

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

typedef struct {
    const void *numbers;
    const uint16_t *half; /* the same numbers in float16, which are read twice as fast; NULL: float16 would round them */
} Panels;

/* Return the panels without their first `count` numbers, which have `size` bytes each. */
static inline Panels panels_after(Panels panels, int64_t count, size_t size) {
    panels.numbers = (const char *)panels.numbers + count * size;
    if (panels.half != NULL) panels.half += count;
    return panels;
}

#endif
