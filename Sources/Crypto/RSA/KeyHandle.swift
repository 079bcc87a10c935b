private import CCrypto

/// Owns an OpenSSL key.
///
/// `@unchecked Sendable` holds because the key does not change after `init`, and OpenSSL lets many threads use an
/// unchanging key (https://docs.openssl.org/3.0/man7/openssl-threads/).
@safe
final class KeyHandle: @unchecked Sendable {
    private let pointer: OpaquePointer

    /// Takes ownership of the key.
    init(_ pointer: OpaquePointer) {
        unsafe self.pointer = unsafe pointer
    }

    deinit {
        unsafe EVP_PKEY_free(pointer)
    }

    /// Calls the closure with the key; the pointer must not outlive the closure.
    func withPointer<Result, Failure: Error>(
        _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unsafe body(pointer)
    }
}
