private import CCrypto

/// OpenSSL's libcrypto: the one place that checks its result codes.
enum LibCrypto {
    /// Throws unless the call answered 1, which is success for every call used here.
    ///
    /// The thread's error queue is emptied, since what is left there would be taken for its own by the next TLS call on
    /// the same thread (https://docs.openssl.org/3.0/man3/SSL_get_error/).
    static func check(_ call: String, _ result: Int32) throws(SealError) {
        guard result != 1 else { return }
        let code = ERR_get_error()
        ERR_clear_error()
        throw .libraryFailure(call: call, code: code)
    }

    /// Whether the call answered 1, for callers to whom every other answer means the same, such as a bad signature.
    ///
    /// The thread's error queue is emptied, as ``check(_:_:)`` does.
    static func isSuccess(_ result: Int32) -> Bool {
        if result != 1 { ERR_clear_error() }
        return result == 1
    }

    /// Fills a part of the room with bytes from the library's own generator, which the system seeds.
    static func fillRandomly(_ room: inout MutableRawSpan, in range: Range<Int>) throws(SealError) {
        let result = unsafe room.withUnsafeMutableBytes { bytes in
            let part = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[range])
            return unsafe RAND_bytes(part.assumingMemoryBound(to: UInt8.self).baseAddress, Int32(part.count))
        }
        try check("RAND_bytes", result)
    }

    /// Overwrites bytes in a way that the optimiser may not remove (https://docs.openssl.org/3.0/man3/OPENSSL_malloc/).
    static func wipe(_ room: inout MutableRawSpan) {
        unsafe room.withUnsafeMutableBytes { bytes in unsafe OPENSSL_cleanse(bytes.baseAddress, bytes.count) }
    }
}
