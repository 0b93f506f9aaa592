/* SPDX-License-Identifier: Apache-2.0
 *
 * A library with a plain C ABI that takes matrices by DLPack and knows nothing of SYCL.
 *
 * It reads elements in the calling thread: `data` is host or shared USM, and the work on it
 * has finished. Every function says what it expects in its result: 0, or a negative number and
 * then nothing was read or taken. */
#ifndef MATRIX_SUMS_H
#define MATRIX_SUMS_H

#include <dlpack/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  SUMS_OK = 0,
  SUMS_WRONG_VERSION = -1, /* another major version of DLPack */
  SUMS_WRONG_DEVICE = -2,  /* not kDLOneAPI */
  SUMS_WRONG_DTYPE = -3,   /* not float32 */
  SUMS_WRONG_RANK = -4,    /* not 2 */
  SUMS_WRONG_STATE = -5    /* a matrix is kept already, or none is */
};

/* Adds the elements. Borrows: `matrix` and its data live as long as the call. */
int sums_add(const DLTensor* matrix, double* sum);

/* Keeps the matrix, and with SUMS_OK owns it: calls its deleter in `sums_drop`. */
int sums_keep(DLManagedTensorVersioned* matrix);
/* Adds the elements of the matrix that is kept. */
int sums_add_kept(double* sum);
/* Calls the deleter of the matrix that is kept, if there is one. */
void sums_drop(void);

#ifdef __cplusplus
}
#endif

#endif
