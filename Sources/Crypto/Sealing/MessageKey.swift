private import Base
private import CCrypto

/// A key that computes and checks HMAC-SHA256 codes (RFC 2104).
///
/// Both hashes of an HMAC begin with a block that depends only on the key. Their states after it are computed once, so
/// that a short message costs two compressions.
package struct MessageKey: Sendable {
    static let codeLength = 32
    private static let blockLength = 64
    private static let stateLength = ccrypto_sha256_state_size()

    /// The states of the inner and the outer hash, which are as secret as the key.
    private let states: Secret

    package init(_ secret: Secret) {
        // Longer keys are hashed first, shorter ones are padded with zeroes.
        let isLong = secret.count > Self.blockLength
        let key = isLong ? Secret(utf8: Digest.sha256(secret.bytes)) : secret
        states = Secret(capacity: 2 * Self.stateLength) { buffer in
            key.withBytes { key in
                Self.begin(&buffer, index: 0, key: key, pad: 0x36)
                Self.begin(&buffer, index: 1, key: key, pad: 0x5c)
            }
            return buffer.byteCount
        }
    }

    /// Computes the message's authentication code.
    ///
    /// Compare codes only with ``ConstantTime``.
    package func authenticate(_ message: [UInt8]) -> [UInt8] {
        var code = [UInt8](repeating: 0, count: Self.codeLength)
        var span = code.mutableSpan
        var buffer = unsafe span.mutableBytes
        unsafe authenticate(message.span.bytes, into: &buffer)
        return code
    }

    /// Writes the message's authentication code into the first 32 bytes of the buffer.
    func authenticate(_ message: RawSpan, into buffer: inout MutableRawSpan) {
        precondition(buffer.byteCount >= Self.codeLength)
        let result = states.withBytes { states in
            unsafe buffer.withUnsafeMutableBytes { buffer in
                unsafe states.withUnsafeBytes { states in
                    unsafe message.withUnsafeBytes { message in
                        unsafe ccrypto_hmac_sha256(
                            states.baseAddress,
                            message.baseAddress,
                            message.count,
                            buffer.baseAddress
                        )
                    }
                }
            }
        }
        // It cannot fail for any input. A wrong code would be worse than a crash.
        guard OpenSSL.isSuccess(result) else { OpenSSL.endProcess("HMAC failed") }
    }

    private static func begin(_ buffer: inout MutableRawSpan, index stateIndex: Int32, key: RawSpan, pad: UInt8) {
        // The block is wiped like every secret, because it contains the key.
        let block = Secret(capacity: blockLength) { block in
            for offset in 0..<blockLength {
                let byte = offset < key.byteCount ? key.byte(at: offset) : 0
                block.storeBytes(of: byte ^ pad, toByteOffset: offset, as: UInt8.self)
            }
            return blockLength
        }
        let result = block.withBytes { block in
            unsafe buffer.withUnsafeMutableBytes { buffer in
                unsafe block.withUnsafeBytes { block in
                    unsafe ccrypto_sha256_begin(buffer.baseAddress, stateIndex, block.baseAddress)
                }
            }
        }
        guard OpenSSL.isSuccess(result) else { OpenSSL.endProcess("SHA-256 failed") }
    }
}

extension Secret {
    fileprivate var bytes: [UInt8] {
        withBytes { span in (0..<span.byteCount).map { span.byte(at: $0) } }
    }
}
