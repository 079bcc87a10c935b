// Hooks for calls to other machines; sockets on which the process itself listens are ignored.
#define _GNU_SOURCE
#include "shim.h"
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
    if (decide(OP_RESOLVE, CLASS_NET).action != PASS) return EAI_AGAIN;
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    return next(node, service, hints, result);
}

EXPORT int connect(int descriptor, const struct sockaddr *address, socklen_t length) {
    if (address->sa_family == AF_INET || address->sa_family == AF_INET6) {
        struct effect effect = decide(OP_CONNECT, CLASS_NET);
        if (effect.action != PASS) {
            errno = effect.error;
            return -1;
        }
        remember(descriptor, NULL, CLASS_NET);
    }
    return (int)syscall(SYS_connect, descriptor, address, length);
}

EXPORT ssize_t sendto(
    int descriptor, const void *data, size_t count, int flags, const struct sockaddr *address, socklen_t length
) {
    if (target_of(descriptor).class == CLASS_NET) {
        struct effect effect = decide(OP_SEND, CLASS_NET);
        if (effect.action == SHORTEN) {
            // A part is sent and the connection breaks: the other side receives half a request.
            ssize_t ignored = syscall(SYS_sendto, descriptor, data, count / 2, flags, address, length);
            (void)ignored;
        }
        if (effect.action != PASS) {
            errno = effect.error;
            return -1;
        }
    }
    return syscall(SYS_sendto, descriptor, data, count, flags, address, length);
}

EXPORT ssize_t send(int descriptor, const void *data, size_t count, int flags) {
    return sendto(descriptor, data, count, flags, NULL, 0);
}

EXPORT ssize_t recvfrom(
    int descriptor, void *restrict buffer, size_t count, int flags, struct sockaddr *restrict address,
    socklen_t *restrict length
) {
    if (target_of(descriptor).class == CLASS_NET) {
        struct effect effect = decide(OP_RECEIVE, CLASS_NET);
        if (effect.action == FAIL) {
            errno = effect.error;
            return -1;
        }
        if (effect.action == SHORTEN && count > 16) count = 16;
    }
    return syscall(SYS_recvfrom, descriptor, buffer, count, flags, address, length);
}

EXPORT ssize_t recv(int descriptor, void *buffer, size_t count, int flags) {
    return recvfrom(descriptor, buffer, count, flags, NULL, NULL);
}
