/* SPDX-License-Identifier: Apache-2.0
 *
 * The consumer: C, compiled as C. */
#include "matrix_sums.h"

#include <stddef.h>

static DLManagedTensorVersioned* kept = NULL;

static int check(const DLTensor* matrix) {
  const DLDataType dtype = matrix->dtype;
  if (matrix->device.device_type != kDLOneAPI) {
    return SUMS_WRONG_DEVICE;
  }
  if (dtype.code != kDLFloat || dtype.bits != 32 || dtype.lanes != 1) {
    return SUMS_WRONG_DTYPE;
  }
  return matrix->ndim == 2 ? SUMS_OK : SUMS_WRONG_RANK;
}

int sums_add(const DLTensor* matrix, double* sum) {
  const int status = check(matrix);
  if (status != SUMS_OK) {
    return status;
  }
  const float* first = (const float*)((const char*)matrix->data + matrix->byte_offset);
  *sum = 0;
  for (int64_t i = 0; i < matrix->shape[0]; ++i) {
    for (int64_t j = 0; j < matrix->shape[1]; ++j) {
      *sum += first[i * matrix->strides[0] + j * matrix->strides[1]];
    }
  }
  return SUMS_OK;
}

int sums_keep(DLManagedTensorVersioned* matrix) {
  if (matrix->version.major != DLPACK_MAJOR_VERSION) {
    return SUMS_WRONG_VERSION;
  }
  const int status = kept == NULL ? check(&matrix->dl_tensor) : SUMS_WRONG_STATE;
  if (status == SUMS_OK) {
    kept = matrix;
  }
  return status;
}

int sums_add_kept(double* sum) {
  return kept == NULL ? SUMS_WRONG_STATE : sums_add(&kept->dl_tensor, sum);
}

void sums_drop(void) {
  if (kept != NULL && kept->deleter != NULL) {
    kept->deleter(kept);
  }
  kept = NULL;
}
