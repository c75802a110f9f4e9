/* The element-wise half of an LSTM step in one pass over memory, for float32 and bfloat16 on a CPU.

   The arithmetic is that of cell.py. Plain C that the compiler turns into vector instructions: no libraries, no headers
   of Python or torch. */

#include "numbers.h"
#include "threads.h"

/* Number k of a row: its gates, and the new c. */
#define STEP(LOAD)                                                                                                     \
    float i = sigmoid(LOAD(x[k]) + LOAD(h[k]) + bias[k]);                                                              \
    float j = hyperbolic(LOAD(x[dim + k]) + LOAD(h[dim + k]) + bias[dim + k]);                                         \
    float f = sigmoid(LOAD(x[2 * dim + k]) + LOAD(h[2 * dim + k]) + bias[2 * dim + k]);                                \
    float o = sigmoid(LOAD(x[3 * dim + k]) + LOAD(h[3 * dim + k]) + bias[3 * dim + k]);                                \
    float next = clipped(f * c[k] + i * j, clip);

typedef struct {
    int64_t dim;
    const void *inputs, *recurrent;
    const float *bias;
    float clip;
    float *state;
    void *gates;
    float *cells;
    void *hidden;
} Step;

/* Rows of all tensors lie end to end; `gates` and `cells` may be NULL. Sizes are in elements. */
#define FORWARD(NAME, LOW, LOAD, STORE)                                                                                \
    VARIANTS static void NAME##_rows(const void *arguments, int64_t first, int64_t last) {                             \
        const Step step = *(const Step *)arguments;                                                                    \
        const int64_t dim = step.dim;                                                                                  \
        const float clip = step.clip, *restrict bias = step.bias;                                                      \
        for (int64_t row = first; row < last; row++) {                                                                 \
            const LOW *restrict x = (const LOW *)step.inputs + row * 4 * dim;                                          \
            const LOW *restrict h = (const LOW *)step.recurrent + row * 4 * dim;                                       \
            float *restrict c = step.state + row * dim;                                                                \
            LOW *restrict out = (LOW *)step.hidden + row * dim;                                                        \
            if (step.gates == NULL) {                                                                                  \
                INDEPENDENT                                                                                            \
                for (int64_t k = 0; k < dim; k++) {                                                                    \
                    STEP(LOAD)                                                                                         \
                    c[k] = next;                                                                                       \
                    out[k] = STORE(o * hyperbolic(next));                                                              \
                }                                                                                                      \
                continue;                                                                                              \
            }                                                                                                          \
            LOW *restrict kept = (LOW *)step.gates + row * 4 * dim;                                                    \
            float *restrict cell = step.cells + row * dim;                                                             \
            INDEPENDENT                                                                                                \
            for (int64_t k = 0; k < dim; k++) {                                                                        \
                STEP(LOAD)                                                                                             \
                kept[k] = STORE(i), kept[dim + k] = STORE(j);                                                          \
                kept[2 * dim + k] = STORE(f), kept[3 * dim + k] = STORE(o);                                            \
                c[k] = cell[k] = next;                                                                                 \
                out[k] = STORE(o * hyperbolic(next));                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    void NAME(int64_t threads, int64_t rows, int64_t dim, const LOW *inputs, const LOW *recurrent, const float *bias,  \
              float clip, float *state, LOW *gates, float *cells, LOW *hidden) {                                       \
        const Step step = {dim, inputs, recurrent, bias, clip, state, gates, cells, hidden};                           \
        spacy_elmo_share_rows(threads, rows, dim, NAME##_rows, &step);                                                 \
    }

FOR_BOTH(FORWARD, cell_forward)

#define BACKWARD(NAME, LOW, LOAD, STORE)                                                                               \
    VARIANTS void NAME(int64_t rows, int64_t dim, const LOW *gates, const float *cells, const float *before,           \
                       const LOW *dhidden, float clip, float *dstate, LOW *dgates, float *dbias) {                     \
        for (int64_t row = 0; row < rows; row++) {                                                                     \
            const LOW *restrict gate = gates + row * 4 * dim;                                                          \
            const float *restrict cell = cells + row * dim, *restrict previous = before + row * dim;                   \
            const LOW *restrict dh = dhidden + row * dim;                                                              \
            float *restrict dc = dstate + row * dim;                                                                   \
            LOW *restrict out = dgates + row * 4 * dim;                                                                \
            INDEPENDENT                                                                                                \
            for (int64_t k = 0; k < dim; k++) {                                                                        \
                float i = LOAD(gate[k]), j = LOAD(gate[dim + k]);                                                      \
                float f = LOAD(gate[2 * dim + k]), o = LOAD(gate[3 * dim + k]);                                        \
                float squashed = hyperbolic(cell[k]), dout = LOAD(dh[k]);                                              \
                float d = dc[k] + dout * o * (1.0f - squashed * squashed);                                             \
                d = fabsf(cell[k]) >= clip ? 0.0f : d;                                                                 \
                dc[k] = d * f;                                                                                         \
                float di = d * j * i * (1.0f - i), dj = d * i * (1.0f - j * j);                                        \
                float df = d * previous[k] * f * (1.0f - f), dgate = dout * squashed * o * (1.0f - o);                 \
                out[k] = STORE(di), out[dim + k] = STORE(dj);                                                          \
                out[2 * dim + k] = STORE(df), out[3 * dim + k] = STORE(dgate);                                         \
                dbias[k] += di, dbias[dim + k] += dj, dbias[2 * dim + k] += df, dbias[3 * dim + k] += dgate;           \
            }                                                                                                          \
        }                                                                                                              \
    }

FOR_BOTH(BACKWARD, cell_backward)
