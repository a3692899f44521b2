/* Cards, sessions, failures. */
#include "cuda/card.h"

#include <cstdio>
#include <cstring>
#include <new>

#include "cuda/plugin.h"

/* "the card failed in cudaMalloc: out of memory"; what: the call's text, of which its name is shown. */
static bool say(const char *what, const char *why, thi_device_said *said)
{
    int name = (int)strcspn(what, "(");
    snprintf(said->text, sizeof said->text, "the card failed in %.*s: %s", name, what, why);
    return true;
}

bool thi_cuda_failed(cudaError_t error, const char *what, thi_device_said *said)
{
    return error != cudaSuccess && say(what, cudaGetErrorString(error), said);
}

bool thi_cuda_failed(cublasStatus_t error, const char *what, thi_device_said *said)
{
    return error != CUBLAS_STATUS_SUCCESS && say(what, cublasGetStatusString(error), said);
}

bool thi_cuda_failed(cusolverStatus_t error, const char *what, thi_device_said *said)
{
    char why[40];
    snprintf(why, sizeof why, "status %d of cuSOLVER", (int)error);
    return error != CUSOLVER_STATUS_SUCCESS && say(what, why, said);
}

thiele_status thi_cuda_doubles(double **out, size_t count, thi_device_said *said)
{
    size_t bytes = count * sizeof(double), available = 0, memory = 0;
    cudaError_t error = cudaMalloc((void **)out, bytes > 0 ? bytes : sizeof(double));
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError(); /* it is dealt with */
        cudaMemGetInfo(&available, &memory);
        *out = NULL;
        snprintf(said->text, sizeof said->text, "the card has no room for %.1f GiB more: %.1f of its %.1f GiB are free",
                 (double)bytes / 1073741824.0, (double)available / 1073741824.0, (double)memory / 1073741824.0);
        return THIELE_ERROR_UNSUPPORTED;
    }
    CUDA_TRY(error);
    return THIELE_OK;
}

int thi_cuda_count(thi_device_said *said)
{
    int count = 0, driver = 0, runtime = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) {
        return count;
    }
    cudaGetLastError();
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (error == cudaErrorInsufficientDriver && driver > 0) {
        snprintf(said->text, sizeof said->text, "the driver is for CUDA %d.%d, and libthiele-cuda needs %d.0 at least",
                 driver / 1000, driver % 1000 / 10, runtime / 1000);
    } else {
        snprintf(said->text, sizeof said->text, "there is no CUDA card that can be used: %s",
                 driver == 0            ? "no driver is installed"
                 : error != cudaSuccess ? cudaGetErrorString(error)
                                        : "none was found");
    }
    return 0;
}

thiele_status thi_cuda_describe(int card, thi_device_card *out, thi_device_said *said)
{
    cudaDeviceProp properties;
    size_t available, memory;
    *out = thi_device_card();
    CUDA_TRY(cudaSetDevice(card));
    CUDA_TRY(cudaGetDeviceProperties(&properties, card));
    CUDA_TRY(cudaMemGetInfo(&available, &memory));
    CUDA_TRY(cudaDriverGetVersion(&out->driver));
    CUDA_TRY(cudaRuntimeGetVersion(&out->runtime));
    if (cudaDeviceGetAttribute(&out->double_slowdown, cudaDevAttrSingleToDoublePrecisionPerfRatio, card) !=
        cudaSuccess) {
        cudaGetLastError();
        out->double_slowdown = 0;
    }
    snprintf(out->model, sizeof out->model, "%.100s", properties.name);
    out->memory = memory;
    out->available = available;
    out->major = properties.major;
    out->minor = properties.minor;
    return THIELE_OK;
}

static thiele_status make(thi_session *s, thi_device_said *said)
{
    CUDA_TRY(cudaSetDevice(s->card));
    CUDA_TRY(cublasCreate(&s->blas));
    CUDA_TRY(cusolverDnCreate(&s->solver));
    CUDA_TRY(cusolverDnCreateParams(&s->params));
    return THIELE_OK;
}

thiele_status thi_cuda_begin(void **session, int card, thi_device_said *said)
{
    thi_session *s = new (std::nothrow) thi_session();
    *session = NULL;
    if (s == NULL) {
        say("begin", "out of memory", said);
        return THIELE_ERROR_UNSUPPORTED;
    }
    s->card = card;
    thiele_status status = make(s, said);
    if (status != THIELE_OK) {
        thi_cuda_end(s);
        return status;
    }
    *session = s;
    return THIELE_OK;
}

void thi_cuda_end(void *session)
{
    thi_session *s = (thi_session *)session;
    if (s == NULL) {
        return;
    }
    if (s->params != NULL) {
        cusolverDnDestroyParams(s->params);
    }
    if (s->solver != NULL) {
        cusolverDnDestroy(s->solver);
    }
    if (s->blas != NULL) {
        cublasDestroy(s->blas);
    }
    delete s;
}
