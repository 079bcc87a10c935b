private import CCrypto

/// Owns a key of the library's.
///
/// `@unchecked Sendable` holds because the key is not changed after `init`, and the library lets many threads use one that
/// nobody changes (https://docs.openssl.org/3.0/man7/openssl-threads/).
@safe
final class KeyHandle: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// Takes ownership.
    init(_ pointer: OpaquePointer) {
        unsafe self.pointer = unsafe pointer
    }

    deinit {
        unsafe EVP_PKEY_free(pointer)
    }

    /// Lends the key; the pointer must not outlive the closure.
    func withPointer<Result, Failure: Error>(
        _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe body(pointer)
    }
}
